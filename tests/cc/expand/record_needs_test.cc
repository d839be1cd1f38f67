// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/record_needs.h"

#include <gtest/gtest.h>

#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

// A body with Retains and Recalls, and the inputs that RecordNeeds asks to follow.
class RecordNeedsTest : public testing::Test {
 protected:
  RecordNeedsTest() : needs_(&retained_, [this](NodeList*, const std::string& input) { followed_.push_back(input); }) {}

  // The position of a new Retain of values "a" and "b".
  int Retain(const std::string& function) {
    GraphBuilder builder;
    builder.Node(function + "_retain", kRetainOp, {"a", "b", "^effect"}, {{kFunctionAttr, function}});
    return Add(builder);
  }
  int Recall(const std::string& function, const Types& types) {
    GraphBuilder builder;
    builder.Node(function + "_recall", kRecallOp, {"record"}, {{kFunctionAttr, function}, {kTypeAttr, types}});
    return Add(builder);
  }

  NodeList list_;
  std::map<std::string, Retained> retained_;
  Inputs followed_;
  RecordNeeds needs_;

 private:
  int Add(const GraphBuilder& builder) {
    list_.Add(builder.graph().node(0), /*with_effect=*/false);
    return static_cast<int>(list_.nodes.size()) - 1;
  }
};

TEST_F(RecordNeedsTest, AnInputIsFollowedIfItsValueIsRead) {
  needs_.AddRetain(&list_, Retain("F"));
  EXPECT_EQ(followed_, Inputs{"^effect"});
  needs_.Need("F", 1);
  EXPECT_EQ(followed_, (Inputs{"^effect", "b"}));
}

TEST_F(RecordNeedsTest, ItDoesNotMatterWhetherTheReaderOrTheRetainIsFoundFirst) {
  needs_.Need("F", 0);
  needs_.AddRetain(&list_, Retain("F"));
  EXPECT_EQ(followed_, (Inputs{"a", "^effect"}));
}

TEST_F(RecordNeedsTest, AValueIsFollowedOnce) {
  needs_.AddRetain(&list_, Retain("F"));
  needs_.Need("F", 1);
  needs_.Need("F", 1);
  EXPECT_EQ(followed_, (Inputs{"^effect", "b"}));
}

TEST_F(RecordNeedsTest, RecordsOfOtherFunctionsAreNotConcerned) {
  needs_.AddRetain(&list_, Retain("F"));
  needs_.Need("G", 1);
  EXPECT_EQ(followed_, Inputs{"^effect"});
}

TEST_F(RecordNeedsTest, AValueThatNoRetainHasIsNoInput) {
  needs_.AddRetain(&list_, Retain("F"));
  needs_.Need("F", 7);
  needs_.Need("F", 2);
  EXPECT_EQ(followed_, Inputs{"^effect"});
}

TEST_F(RecordNeedsTest, EveryValueIsNeededWhereRecordsLeaveTheProgram) {
  needs_.AddRetain(&list_, Retain("F"));
  needs_.AddRecall(&list_, Recall("G", {kInt, kInt, kInt}));
  needs_.NeedAll();
  EXPECT_EQ(followed_, (Inputs{"^effect", "a", "b"}));
  EXPECT_EQ(retained_["G"].needed, std::vector<bool>({true, true, true}));
  needs_.AddRecall(&list_, Recall("H", {kInt}));
  EXPECT_EQ(retained_["H"].needed, std::vector<bool>({true}));
}

}  // namespace
}  // namespace tensorflow_recursion
