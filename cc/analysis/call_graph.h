// Finds which functions are mutually recursive.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_CALL_GRAPH_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_CALL_GRAPH_H_

#include <map>
#include <string>
#include <vector>

namespace tensorflow_recursion {

// The calls between functions, as strongly connected components: functions of one component are
// mutually recursive. Immutable.
class CallGraph {
 public:
  // Callees by caller. Every callee is a key too.
  using Calls = std::map<std::string, std::vector<std::string>>;
  explicit CallGraph(Calls calls);

  // Components, callees before callers; each lists its functions by name.
  const std::vector<std::vector<std::string>>& components() const { return components_; }
  int ComponentOf(const std::string& function) const { return component_of_.at(function); }

  // The functions of the component and all that they call, directly or not, sorted by name.
  std::vector<std::string> ReachableFrom(int component) const;

 private:
  Calls calls_;
  std::vector<std::vector<std::string>> components_;
  std::map<std::string, int> component_of_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_CALL_GRAPH_H_
