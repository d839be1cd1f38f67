// SPDX-License-Identifier: Apache-2.0
#include "cc/base/tensorflow_compat.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::OpKernel;

// Makes kernels of stock NoOps.
class OpSegmentTest : public ::testing::Test {
 protected:
  std::unique_ptr<OpKernel> Kernel(const std::string& name) {
    tensorflow::NodeDef def;
    def.set_name(name);
    def.set_op("NoOp");
    absl::Status status;
    std::unique_ptr<OpKernel> kernel =
        tensorflow::CreateOpKernel(tensorflow::DeviceType(tensorflow::DEVICE_CPU), &device_,
                                   tensorflow::cpu_allocator(), def, TF_GRAPH_DEF_VERSION, &status);
    EXPECT_TRUE(status.ok()) << status;
    return kernel;
  }
  // Lets the segment own a kernel under the session's handle.
  OpKernel* Keep(const std::string& handle, const std::string& name) {
    OpKernel* kernel = nullptr;
    auto create = [&](OpKernel** created) {
      *created = Kernel(name).release();
      return absl::OkStatus();
    };
    segment_.AddHold(handle);
    EXPECT_TRUE(segment_.FindOrCreate(handle, name, &kernel, create).ok());
    return kernel;
  }

  tensorflow::DeviceBase device_{tensorflow::Env::Default()};
  tensorflow::OpSegment segment_;
};

TEST_F(OpSegmentTest, TellsTheSessionThatHoldsAKernel) {
  const OpKernel* const first = Keep("session_a", "run");
  const OpKernel* const second = Keep("session_b", "run");
  EXPECT_EQ(SessionHandleOf(&segment_, *first), "session_a");
  EXPECT_EQ(SessionHandleOf(&segment_, *second), "session_b");
}

TEST_F(OpSegmentTest, HasNoSessionForAKernelOfTheSameNameThatItDoesNotHold) {
  Keep("session", "run");
  EXPECT_EQ(SessionHandleOf(&segment_, *Kernel("run")), "");
}

TEST_F(OpSegmentTest, HasNoSessionWhereItIsEmpty) { EXPECT_EQ(SessionHandleOf(&segment_, *Kernel("run")), ""); }

// What OpKernelContext offers in TensorFlow 2.17 and later, and what it lacks in 2.16.
struct ContextWithConfig {
  const tensorflow::ConfigProto* config = nullptr;
  const tensorflow::ConfigProto* session_config() const { return config; }
};
struct ContextWithoutConfig {};

TEST(InterOpThreadsTest, AreThoseOfTheSessionsConfiguration) {
  tensorflow::ConfigProto config;
  config.set_inter_op_parallelism_threads(3);
  EXPECT_EQ(internal::InterOpThreads(ContextWithConfig{&config}, 0), 3);
}

TEST(InterOpThreadsTest, AreUnknownWithoutAConfiguration) {
  EXPECT_EQ(internal::InterOpThreads(ContextWithConfig{}, 0), 0);
  EXPECT_EQ(internal::InterOpThreads(ContextWithoutConfig{}, 0), 0);
}

tensorflow::FunctionDef Function(const std::string& name, const std::string& callee) {
  tensorflow::FunctionDef function;
  function.mutable_signature()->set_name(name);
  if (callee.empty()) return function;
  tensorflow::NodeDef* const call = function.add_node_def();
  call->set_name("call");
  call->set_op(callee);
  return function;
}

TEST(ReachableFunctionsTest, AreThoseThatTheGraphCallsAndThoseThatTheyCall) {
  tensorflow::FunctionDefLibrary functions;
  *functions.add_function() = Function("Caller", "Callee");
  *functions.add_function() = Function("Callee", "");
  *functions.add_function() = Function("Unused", "");
  const tensorflow::FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), functions);
  tensorflow::Graph graph(library);
  tensorflow::NodeDef call;
  call.set_name("call");
  call.set_op("Caller");
  absl::Status status;
  graph.AddNode(call, &status);
  ASSERT_TRUE(status.ok()) << status;
  const tensorflow::FunctionLibraryDefinition reachable = ReachableFunctions(library, graph);
  EXPECT_TRUE(reachable.Contains("Caller"));
  EXPECT_TRUE(reachable.Contains("Callee"));
  EXPECT_FALSE(reachable.Contains("Unused"));
}

}  // namespace
}  // namespace tensorflow_recursion
