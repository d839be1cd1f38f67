// Which values of records the fetches need, so that nothing else is computed only to be retained.
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

  // Say that a Retain, or a Recall, is reachable; each is said once.
  void AddRetain(NodeList* list, int node);
  void AddRecall(NodeList* list, int node);

  // Says that value `value` of the records of `function` is read.
  void Need(const std::string& function, int value);
  // Says that all values which `recall` may read are, so that its outputs stay where they are.
  void NeedAllOf(const tensorflow::NodeDef& recall);
  // Says that records come from other programs or go there, which must know all of their values, whichever they read.
  void NeedAll();

 private:
  using Place = std::pair<NodeList*, int>;  // a node

  void NeedAllRetained(const tensorflow::NodeDef& retain);

  std::map<std::string, Retained>& retained_;
  const FollowInput follow_input_;
  bool needs_all_ = false;
  std::map<std::string, std::vector<Place>> retains_;  // that are reachable, by function
  std::vector<Place> recalls_;                         // that are reachable
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_RECORD_NEEDS_H_
