// SPDX-License-Identifier: Apache-2.0
#include "cc/base/tensorflow_compat.h"

#include "tensorflow/core/platform/mutex.h"

namespace tensorflow_recursion {
namespace {

// The key under which `sessions` hold `kernel`; empty if they don't.
template <typename Sessions>
std::string HandleIn(const Sessions& sessions, const tensorflow::OpKernel& kernel) {
  for (const auto& session : sessions) {
    const auto found = session.second->name_kernel.find(kernel.name());
    if (found != session.second->name_kernel.end() && found->second == &kernel) return session.first;
  }
  return "";
}

std::string FindSessionHandle(tensorflow::OpSegment* segment, const tensorflow::OpKernel& kernel);

// Defines the function above as a friend, with private members of OpSegment as its arguments: C++ lets the arguments of
// an explicit instantiation name private members, as in the last line, and nothing else.
template <auto kSessions, auto kMutex>
struct OpSegmentReader {
  friend std::string FindSessionHandle(tensorflow::OpSegment* segment, const tensorflow::OpKernel& kernel) {
    tensorflow::mutex_lock lock(segment->*kMutex);
    return HandleIn(segment->*kSessions, kernel);
  }
};
template struct OpSegmentReader<&tensorflow::OpSegment::sessions_, &tensorflow::OpSegment::mu_>;

}  // namespace

std::string SessionHandleOf(tensorflow::OpSegment* segment, const tensorflow::OpKernel& kernel) {
  return FindSessionHandle(segment, kernel);
}

}  // namespace tensorflow_recursion
