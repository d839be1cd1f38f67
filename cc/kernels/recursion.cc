// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/recursion.h"

#include <mutex>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tensorflow_recursion {
namespace {

// Whether the error only follows from another one: when a kernel fails, TensorFlow cancels all others.
bool IsConsequence(const absl::Status& status) { return absl::IsCancelled(status) || absl::IsAborted(status); }

absl::Status WithMessage(const absl::Status& status, absl::string_view message) {
  absl::Status result(status.code(), message);
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

}  // namespace

void Recursion::Record(const absl::Status& status, absl::string_view function,
                       const std::function<std::string()>& path) {
  std::lock_guard<std::mutex> lock(mu);
  if (!first_error.ok() && (IsConsequence(status) || !IsConsequence(first_error))) return;
  const absl::string_view what = status.message().empty() ? "The call was cancelled" : status.message();
  first_error =
      WithMessage(status, absl::StrCat("{{function_node ", function, "}} ", what, "\n\t in call path ", path()));
}

absl::Status Recursion::FirstError() {
  std::lock_guard<std::mutex> lock(mu);
  return first_error;
}

}  // namespace tensorflow_recursion
