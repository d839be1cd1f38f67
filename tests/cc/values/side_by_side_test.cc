// SPDX-License-Identifier: Apache-2.0
#include "cc/values/side_by_side.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/threadpool.h"

namespace tensorflow_recursion {
namespace {

// `count` texts of 0 to `longest` characters, all different.
std::vector<std::string> Texts(int count, int longest) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    std::string text = std::to_string(i);
    text.resize(i * 7 % (longest + 1), static_cast<char>('a' + i % 26));
    texts.push_back(text);
  }
  return texts;
}

void ExpectCopied(const std::vector<std::string>& texts, tensorflow::thread::ThreadPool* threads) {
  std::string whole;
  for (const std::string& text : texts) whole += text;
  std::string copy(whole.size() + 1, '.');  // one more, which stays
  CopySideBySide(std::vector<absl::string_view>(texts.begin(), texts.end()), copy.data(), threads);
  EXPECT_EQ(copy, whole + '.');
}

TEST(CopySideBySideTest, CopiesPiecesOneBehindTheOther) {
  ExpectCopied({}, nullptr);
  ExpectCopied({""}, nullptr);
  ExpectCopied({"one", "", "two", ""}, nullptr);
  ExpectCopied(Texts(100, 50), nullptr);
}

TEST(CopySideBySideTest, ManyThreadsCopyTheSame) {
  tensorflow::thread::ThreadPool threads(tensorflow::Env::Default(), "test", 4);
  ExpectCopied({}, &threads);
  ExpectCopied({"one"}, &threads);
  ExpectCopied(Texts(100, 50), &threads);
  ExpectCopied(Texts(60, 40'000), &threads);  // large enough to be shared
}

}  // namespace
}  // namespace tensorflow_recursion
