// Finds the values of records that the fetches need, so that nothing else is computed only to be retained.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_RECORD_NEEDS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_RECORD_NEEDS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cc/expand/call_program.h"

namespace tensorflow_recursion {

// No edge leads from a Retain to the Recalls that read its record, so what is needed of a record is kept here, by the
// function whose record it is. For example, if a gradient reads only the second value of F's record, the second input
// of each reachable Retain of F is needed, whether the Retain is found before that is known or after it.
class RecordNeeds {
 public:
  using FollowInput = std::function<void(NodeList* list, const std::string& input)>;

  // Fills in Retained::needed of `retained`, which must outlive it. Calls `follow_input` with each input of a reachable
  // Retain that is needed, which may call everything here in turn.
  RecordNeeds(std::map<std::string, Retained>* retained, FollowInput follow_input)
      : retained_(*retained), follow_input_(std::move(follow_input)) {}

  // Say that a Retain, or a Recall, is reachable. Each is to be added once.
  void AddRetain(NodeList* list, int node);
  void AddRecall(NodeList* list, int node);

  // Says that value `value` of the records of `function` is read.
  void Need(const std::string& function, int value);
  // Says that all values which `recall` may read are read. So none is dropped, and its outputs keep their numbers.
  void NeedAllOf(const tensorflow::NodeDef& recall);
  // Says that records come from other programs, or go to them. Both must then have all values, whichever are read.
  void NeedAll();

 private:
  // A node and the list that it is in.
  using Place = std::pair<NodeList*, int>;

  void NeedAllRetained(const tensorflow::NodeDef& retain);

  std::map<std::string, Retained>& retained_;
  const FollowInput follow_input_;
  bool needs_all_ = false;
  // The reachable Retains, by function, and the reachable Recalls.
  std::map<std::string, std::vector<Place>> retains_;
  std::vector<Place> recalls_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_RECORD_NEEDS_H_
