// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/loose_records.h"

#include <gtest/gtest.h>

#include <vector>

#include "cc/values/record.h"

namespace tensorflow_recursion {
namespace {

class LooseRecordsTest : public ::testing::Test {
 protected:
  ~LooseRecordsTest() override { EXPECT_EQ(Record::LiveCount(), 0); }
};

TEST_F(LooseRecordsTest, ARecordMovesOutWithItsReference) {
  LooseRecords loose;
  Record* const record = loose.Add(Record::New(0));
  EXPECT_EQ(loose.Take(record), record);
  EXPECT_TRUE(record->IsUnshared());
  loose.Clear();
  EXPECT_EQ(Record::LiveCount(), 1);
  record->Unref();
}

TEST_F(LooseRecordsTest, OneThatHasMovedOutIsShared) {
  LooseRecords loose;
  Record* const record = loose.Add(Record::New(0));
  loose.Take(record);
  EXPECT_EQ(loose.Take(record), record);
  EXPECT_FALSE(record->IsUnshared());
  record->Unref();
  record->Unref();
}

TEST_F(LooseRecordsTest, OneThatWasMadeLongAgoIsShared) {
  LooseRecords loose;
  Record* const first = loose.Add(Record::New(0));
  for (int i = 0; i < 100; ++i) loose.Add(Record::New(0));
  EXPECT_EQ(loose.Take(first), first);
  EXPECT_FALSE(first->IsUnshared());
  loose.Clear();
  EXPECT_EQ(Record::LiveCount(), 1);
  EXPECT_TRUE(first->IsUnshared());
  first->Unref();
}

TEST_F(LooseRecordsTest, NoRecordIsNone) {
  LooseRecords loose;
  EXPECT_EQ(loose.Take(nullptr), nullptr);
}

TEST_F(LooseRecordsTest, WhatNobodyHasTakenIsFreed) {
  LooseRecords loose;
  for (int i = 0; i < 10; ++i) loose.Add(Record::New(3));
  EXPECT_EQ(Record::LiveCount(), 10);
}

}  // namespace
}  // namespace tensorflow_recursion
