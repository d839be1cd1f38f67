# The C++ sources and flags, listed once: Bazel loads this file, setup.py executes it. Both languages
# read it, so it holds only assignments of literals. Paths are relative to the repository.
# SPDX-License-Identifier: Apache-2.0

# libtensorflow_recursion.so: what tf.load_op_library loads.
LIBRARY_SOURCES = [
    "cc/analysis/call_decision.cc",
    "cc/analysis/conditions.cc",
    "cc/analysis/effects.cc",
    "cc/analysis/flow_graph.cc",
    "cc/analysis/regions.cc",
    "cc/analysis/waits.cc",
    "cc/executor/frame.cc",
    "cc/executor/run.cc",
    "cc/executor/worker.cc",
    "cc/executor/worker_deaths.cc",
    "cc/executor/worker_frames.cc",
    "cc/executor/worker_operators.cc",
    "cc/executor/worker_sites.cc",
    "cc/executor/worker_values.cc",
    "cc/expand/body_factory.cc",
    "cc/expand/call_graph.cc",
    "cc/expand/emission.cc",
    "cc/expand/expand_calls.cc",
    "cc/expand/handles.cc",
    "cc/expand/placement.cc",
    "cc/expand/reachability.cc",
    "cc/expand/resolve_calls.cc",
    "cc/expand/verify.cc",
    "cc/kernels/contributions.cc",
    "cc/kernels/flat_stack.cc",
    "cc/kernels/invoke_op.cc",
    "cc/kernels/op_schemas.cc",
    "cc/kernels/record_ops.cc",
    "cc/kernels/registration.cc",
    "cc/kernels/run_op.cc",
    "cc/kernels/spare_threads.cc",
    "cc/kernels/stock_kernel_runner.cc",
    "cc/kernels/stray_kernels.cc",
    "cc/kernels/variant_zeros.cc",
    "cc/passes/composite.cc",
    "cc/passes/hide_callees.cc",
    "cc/passes/prepare_graph.cc",
    "cc/passes/recursion_optimizer.cc",
    "cc/passes/spread_calls.cc",
    "cc/program/program.cc",
    "cc/program/slots.cc",
    "cc/values/device_memory.cc",
    "cc/values/record.cc",
    "cc/values/scalar_ops.cc",
    "cc/values/slabs.cc",
    "cc/values/value.cc",
]

# Every header of every room, for Bazel; setup.py finds them by the compiler's dependency files.
HEADERS = [
    "cc/analysis/call_decision.h",
    "cc/analysis/conditions.h",
    "cc/analysis/effects.h",
    "cc/analysis/flow_graph.h",
    "cc/analysis/op_kind.h",
    "cc/analysis/regions.h",
    "cc/analysis/waits.h",
    "cc/base/call_path.h",
    "cc/base/names.h",
    "cc/base/options.h",
    "cc/base/status.h",
    "cc/base/tensorflow_compat.h",
    "cc/executor/frame.h",
    "cc/executor/frame_tag.h",
    "cc/executor/kernel_runner.h",
    "cc/executor/run.h",
    "cc/executor/scheduler.h",
    "cc/executor/worker.h",
    "cc/executor/worker_inline.h",
    "cc/expand/body_factory.h",
    "cc/expand/call_graph.h",
    "cc/expand/call_program.h",
    "cc/expand/emission.h",
    "cc/expand/expand_calls.h",
    "cc/expand/handles.h",
    "cc/expand/placement.h",
    "cc/expand/reachability.h",
    "cc/expand/resolve_calls.h",
    "cc/expand/verify.h",
    "cc/kernels/contributions.h",
    "cc/kernels/flat_stack.h",
    "cc/kernels/invoke_op.h",
    "cc/kernels/record_ops.h",
    "cc/kernels/run_op.h",
    "cc/kernels/spare_threads.h",
    "cc/kernels/stock_kernel_runner.h",
    "cc/kernels/stray_kernels.h",
    "cc/passes/composite.h",
    "cc/passes/hide_callees.h",
    "cc/passes/prepare_graph.h",
    "cc/passes/recursion_optimizer.h",
    "cc/passes/spread_calls.h",
    "cc/program/program.h",
    "cc/program/slots.h",
    "cc/values/device_memory.h",
    "cc/values/record.h",
    "cc/values/scalar_ops.h",
    "cc/values/slabs.h",
    "cc/values/value.h",
]

# The pybind11 module tensorflow_recursion._native; links to the library above.
MODULE_SOURCES = [
    "cc/python/module.cc",
]

# GoogleTest sources, one per tested file, of the scheduler one per theme; all of them become one program.
TEST_SOURCES = [
    "tests/cc/analysis/effects_test.cc",
    "tests/cc/analysis/regions_test.cc",
    "tests/cc/base/call_path_test.cc",
    "tests/cc/base/names_test.cc",
    "tests/cc/executor/dead_inputs_test.cc",
    "tests/cc/executor/frame_tag_test.cc",
    "tests/cc/executor/frame_test.cc",
    "tests/cc/executor/partition_test.cc",
    "tests/cc/executor/scheduler_deaths_test.cc",
    "tests/cc/executor/scheduler_depth_test.cc",
    "tests/cc/executor/scheduler_errors_test.cc",
    "tests/cc/executor/scheduler_loops_test.cc",
    "tests/cc/executor/scheduler_records_test.cc",
    "tests/cc/executor/scheduler_test.cc",
    "tests/cc/executor/scheduler_workers_test.cc",
    "tests/cc/expand/call_graph_test.cc",
    "tests/cc/expand/expand_calls_test.cc",
    "tests/cc/expand/placement_test.cc",
    "tests/cc/expand/resolve_calls_test.cc",
    "tests/cc/expand/verify_test.cc",
    "tests/cc/kernels/contributions_test.cc",
    "tests/cc/kernels/flat_stack_test.cc",
    "tests/cc/kernels/record_ops_test.cc",
    "tests/cc/kernels/spare_threads_test.cc",
    "tests/cc/passes/prepare_graph_test.cc",
    "tests/cc/passes/recursion_optimizer_test.cc",
    "tests/cc/passes/spread_calls_test.cc",
    "tests/cc/program/program_test.cc",
    "tests/cc/program/slots_test.cc",
    "tests/cc/values/device_memory_test.cc",
    "tests/cc/values/record_test.cc",
    "tests/cc/values/scalar_ops_test.cc",
    "tests/cc/values/value_test.cc",
]

# The device that tests take for a GPU: a plugin for TensorFlow, a library of its own.
FAKE_GPU_SOURCES = [
    "tests/cc/fake_gpu/device.cc",
    "tests/cc/fake_gpu/kernels.cc",
]

# Helpers that only tests use.
TEST_HEADERS = [
    "tests/cc/executor/fake_runner.h",
    "tests/cc/executor/live_tensors.h",
    "tests/cc/executor/partitions.h",
    "tests/cc/executor/scheduler_fixture.h",
    "tests/cc/executor/test_graphs.h",
    "tests/cc/expand/graphs.h",
    "tests/cc/fake_gpu/memory.h",
    "tests/cc/kernels/run_graph.h",
]

# For every file of ours. The flags TensorFlow itself asks for (tf.sysconfig) come on top.
COPTS = [
    "-O2",
    "-DNDEBUG",  # without it container layouts differ from the wheel's
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Werror=return-type",
    "-Werror=switch",
    "-Werror=unused-result",
]

LINKOPTS = [
    "-Wl,-z,defs",  # an undefined symbol is an error at build time, not at import
    "-Wl,--as-needed",
]

# Sanitizer build of the tests. Abseil changes the layout of its containers when it sees this macro,
# and TensorFlow was compiled without it.
SANITIZER_COPTS = [
    "-O1",
    "-g1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address",
    "-U__SANITIZE_ADDRESS__",
]

SANITIZER_LINKOPTS = [
    "-fsanitize=address",
]
