// Runs a graph whose bodies lie on several devices as a session does: spread, partitioned, every part by itself.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_KERNELS_PARTITIONS_H_
#define TENSORFLOW_RECURSION_TESTS_CC_KERNELS_PARTITIONS_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cc/passes/spread_calls.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph_partition.h"
#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/executor/fake_runner.h"
#include "tests/cc/executor/thread_pool.h"
#include "tests/cc/program/built_programs.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {

// Where the fake sends and receives of one step meet. Every message must be sent once and received once.
class FakeRendezvous {
 public:
  using Done = std::function<void(absl::Status)>;
  // Lenient: a message that is sent or received twice is dropped or an error, as of a graph that nobody has made.
  explicit FakeRendezvous(std::function<void(std::function<void()>)> schedule, bool is_lenient = false)
      : schedule_(std::move(schedule)), is_lenient_(is_lenient) {}
  ~FakeRendezvous() {
    for (auto& [key, message] : messages_) message.value.Release();
  }

  void Send(const std::string& key, KernelCall* call) {
    std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_EQ(call->is_dead, call->inputs[0].is_dead()) << key;
    if (is_aborted_) return;
    Message& message = messages_[key];
    if (message.is_sent && is_lenient_) return;
    EXPECT_FALSE(message.is_sent) << "sent twice: " << key;
    message.is_sent = true;
    ++num_sent_;
    num_dead_ += call->is_dead;
    if (!call->is_dead) message.value = call->inputs[0].Take().Escape();
    if (message.receiver) Hand(&message);
  }

  void Receive(const std::string& key, KernelCall* call, Done done) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (is_aborted_) return schedule_([done] { done(absl::CancelledError("aborted")); });
    Message& message = messages_[key];
    if (message.receiver && is_lenient_) return schedule_([done] { done(absl::InternalError("received twice")); });
    EXPECT_FALSE(message.receiver) << "received twice: " << key;
    message.call = call;
    message.receiver = std::move(done);
    if (message.is_sent) Hand(&message);
  }

  // Ends what still waits, and says what it was.
  std::string Abort() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_aborted_ = true;
    std::string waiting;
    for (auto& [key, message] : messages_) {
      if (message.is_sent || !message.receiver) continue;
      absl::StrAppend(&waiting, key, "\n");
      schedule_([done = std::move(message.receiver)] { done(absl::CancelledError("aborted")); });
      message.is_sent = true;
    }
    return waiting;
  }

  // What was sent and nobody has received.
  std::string Unreceived() const {
    std::lock_guard<std::mutex> lock(mutex_);
    std::string unreceived;
    for (const auto& [key, message] : messages_) {
      if (!message.receiver) absl::StrAppend(&unreceived, key, "\n");
    }
    return unreceived;
  }

  int num_sent() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return num_sent_;
  }
  int num_dead() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return num_dead_;
  }

 private:
  struct Message {
    bool is_sent = false;
    Value value = Value::Empty();  // empty: dead
    KernelCall* call = nullptr;
    Done receiver;
  };

  void Hand(Message* message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    message->call->outputs[0] = message->value.Take();
    schedule_([done = message->receiver] { done(absl::OkStatus()); });
  }

  const std::function<void(std::function<void()>)> schedule_;
  const bool is_lenient_;
  mutable std::mutex mutex_;
  std::map<std::string, Message> messages_ ABSL_GUARDED_BY(mutex_);
  bool is_aborted_ ABSL_GUARDED_BY(mutex_) = false;
  int num_sent_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_dead_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The partitions of a graph, by TensorFlow's own partitioning, and their programs.
struct BuiltPartitions {
  std::map<std::string, BuiltProgram> programs;  // by device
  absl::Status status;
};

inline absl::Status PartitionGraph(tensorflow::Graph* graph,
                                   std::unordered_map<std::string, tensorflow::GraphDef>* partitions) {
  tensorflow::PartitionOptions options;
  int next_name = 0;
  options.node_to_loc = [](const tensorflow::Node* node) { return node->assigned_device_name(); };
  options.new_name = [&next_name](const std::string& prefix) { return absl::StrCat(prefix, "/_p", next_name++); };
  options.get_incarnation = [](const std::string&) { return 1; };
  options.flib_def = &graph->flib_def();
  return tensorflow::Partition(options, graph, partitions);
}

inline BuiltPartitions BuildPartitions(tensorflow::Graph* graph) {
  BuiltPartitions built;
  built.status = SpreadCalls(graph);
  std::unordered_map<std::string, tensorflow::GraphDef> partitions;
  if (built.status.ok()) built.status = PartitionGraph(graph, &partitions);
  if (!built.status.ok()) return built;
  for (const auto& [device, partition] : partitions) {
    BuiltProgram& part = built.programs[device];
    part.status = Construct(partition, &part.graph);
    if (part.status.ok())
      part.status = BuildProgram(*part.graph, DeviceMemory(), VariableReads::kInEveryFrame, &part.program);
    if (built.status.ok()) built.status = part.status;
  }
  return built;
}

// `devices` says where nodes go; arguments and results of the graph must be on device A.
inline BuiltPartitions BuildPartitions(const StaticGraph& graph, const Devices& devices) {
  BuiltPartitions built;
  std::unique_ptr<tensorflow::Graph> whole;
  built.status = Construct(graph.graph(), &whole);
  if (!built.status.ok()) return built;
  Assign(devices, whole.get());
  return BuildPartitions(whole.get());
}

// Lets the sends and receives of `program` meet in `rendezvous`.
inline void ConnectKernels(const Program& program, FakeRendezvous* rendezvous, FakeRunner* runner) {
  for (const KernelNode& node : program.kernels) {
    if (!node.node->IsSend() && !node.node->IsRecv()) continue;
    std::string tensor;
    std::string receiver;
    EXPECT_TRUE(tensorflow::GetNodeAttr(node.node->attrs(), "tensor_name", &tensor).ok());
    EXPECT_TRUE(tensorflow::GetNodeAttr(node.node->attrs(), "recv_device", &receiver).ok());
    auto key = [tensor, receiver](const FrameTag& tag) {
      return absl::StrCat(tensor, " to ", receiver, " in ", tag.id, ":", tag.iteration);
    };
    if (node.node->IsSend()) {
      runner->On(node.name, [key, rendezvous](KernelCall* call) {
        rendezvous->Send(key(call->tag), call);
        return absl::OkStatus();
      });
    } else {
      runner->OnAsync(node.name, [key, rendezvous](KernelCall* call, FakeRunner::Done done) {
        rendezvous->Receive(key(call->tag), call, std::move(done));
      });
    }
  }
}

// How long to wait before a run is taken to hang. One that ends takes milliseconds, and on a busy machine with a
// sanitizer half a minute.
inline constexpr absl::Duration kPatience = absl::Minutes(10);

class PartitionTest : public ::testing::Test {
 protected:
  // Messages of the last run.
  struct Messages {
    int sent = 0;
    int dead = 0;
  };

  // Runs every partition as long as the others, each with its own order of ready operators. The first error ends all of
  // them, as in a session: what they would receive from the one that failed never comes.
  std::vector<int> Run(const BuiltPartitions& built, const std::vector<int>& arguments, uint64_t seed, int workers) {
    auto schedule = [this](std::function<void()> work) { pool_.Schedule(std::move(work)); };
    FakeRendezvous rendezvous(schedule);
    FakeRunner runner;
    std::map<std::string, PendingRun> runs;
    for (const auto& [device, part] : built.programs) ConnectKernels(*part.program, &rendezvous, &runner);
    for (const auto& [device, part] : built.programs) {
      RunEnvironment environment = EnvironmentOf(part, &runner, &pool_, seed == 0 ? 0 : seed + runs.size());
      environment.max_workers = workers;
      runs[device].Start(environment, device == kDeviceA ? Numbers(arguments) : std::vector<Value>(),
                         [&rendezvous] { rendezvous.Abort(); });
    }
    bool has_ended = true;
    for (auto& [device, run] : runs) has_ended = has_ended && run.EndsWithin(kPatience);
    if (!has_ended) ADD_FAILURE() << "still waiting for:\n" << rendezvous.Abort();
    std::vector<int> results;
    bool is_ok = has_ended;
    for (auto& [device, run] : runs) {
      const Outcome outcome = run.Wait();
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      is_ok = is_ok && outcome.status.ok();
      if (device == kDeviceA) results = outcome.Numbers();
    }
    EXPECT_TRUE(!is_ok || rendezvous.Unreceived().empty()) << rendezvous.Unreceived();
    messages_ = {rendezvous.num_sent(), rendezvous.num_dead()};
    return results;
  }

  // Starts every partition and ends what has not ended by itself: there must be an end.
  void RunAndEnd(const BuiltPartitions& built, uint64_t seed) {
    auto schedule = [this](std::function<void()> work) { pool_.Schedule(std::move(work)); };
    FakeRendezvous rendezvous(schedule, /*is_lenient=*/true);
    FakeRunner runner;
    std::atomic<bool> is_cancelled{false};
    std::map<std::string, PendingRun> runs;
    for (const auto& [device, part] : built.programs) ConnectKernels(*part.program, &rendezvous, &runner);
    for (const auto& [device, part] : built.programs) {
      RunEnvironment environment = EnvironmentOf(part, &runner, &pool_, seed);
      environment.is_cancelled = [&] { return is_cancelled.load(); };
      const std::vector<int> arguments(part.program->argument_types.size(), 5);
      pool_.Schedule([environment, arguments, run = &runs[device]] { run->Start(environment, Numbers(arguments)); });
    }
    for (auto& [device, run] : runs) run.EndsWithin(absl::Milliseconds(20));
    is_cancelled = true;
    rendezvous.Abort();
    for (auto& [device, run] : runs) run.Wait();
  }

  std::vector<int> RunOn(const StaticGraph& graph, const Devices& devices, const std::vector<int>& arguments) {
    const BuiltPartitions built = BuildPartitions(graph, devices);
    EXPECT_TRUE(built.status.ok()) << built.status;
    return built.status.ok() ? Run(built, arguments, 0, 1) : std::vector<int>();
  }

  // What a run is given, and what it yields.
  struct Example {
    std::vector<int> arguments;
    std::vector<int> results;
  };

  // Nodes anywhere, ready operators in any order: the results are the same.
  void ExpectAnywhere(const StaticGraph& graph, const std::vector<int>& arguments, const std::vector<int>& expected) {
    ExpectExamplesAnywhere(graph, {{arguments, expected}}, /*placements=*/25);
  }
  // The same for several runs. To build the partitions takes longer than to run them, so that is done once for all.
  void ExpectExamplesAnywhere(const StaticGraph& graph, const std::vector<Example>& examples, uint32_t placements) {
    for (uint32_t seed = 1; seed <= placements; ++seed) {
      SCOPED_TRACE(absl::StrCat("seed ", seed));
      std::minstd_rand random(seed);
      const std::vector<std::string> names = {kDeviceA, kDeviceB, kDeviceC};
      Devices devices;
      for (const tensorflow::NodeDef& node : graph.graph().node()) {
        const bool is_boundary = node.op() == "_Arg" || node.op() == "_Retval";
        devices[node.name()] = is_boundary ? kDeviceA : names[random() % (2 + seed % 2)];
      }
      const BuiltPartitions built = BuildPartitions(graph, devices);
      ASSERT_TRUE(built.status.ok()) << built.status;
      for (const Example& example : examples) {
        EXPECT_EQ(Run(built, example.arguments, seed, 1), example.results);
        EXPECT_EQ(Run(built, example.arguments, 0, 4), example.results);
      }
      if (HasFailure()) return;
    }
  }

  Messages messages_;
  ThreadPool pool_{4};
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_KERNELS_PARTITIONS_H_
