# The C++ sources and flags, listed once: Bazel loads this file, setup.py executes it. Both languages
# read it, so it holds only assignments of literals. Paths are relative to the repository.
# SPDX-License-Identifier: Apache-2.0

# libtensorflow_recursion.so: what tf.load_op_library loads.
LIBRARY_SOURCES = [
    "cc/executor/call_lives.cc",
    "cc/executor/conditions.cc",
    "cc/executor/device_memory.cc",
    "cc/executor/draft.cc",
    "cc/executor/frame.cc",
    "cc/executor/graph_regions.cc",
    "cc/executor/liveness.cc",
    "cc/executor/program.cc",
    "cc/executor/record.cc",
    "cc/executor/run.cc",
    "cc/executor/scalar_ops.cc",
    "cc/executor/slabs.cc",
    "cc/executor/slots.cc",
    "cc/executor/value.cc",
    "cc/executor/worker.cc",
    "cc/executor/worker_deaths.cc",
    "cc/executor/worker_frames.cc",
    "cc/executor/worker_operators.cc",
    "cc/executor/worker_sites.cc",
    "cc/executor/worker_values.cc",
    "cc/ops/recursion_ops.cc",
    "cc/ops/stray_kernels.cc",
    "cc/runtime/composite_pass.cc",
    "cc/runtime/contributions.cc",
    "cc/runtime/flat_stack.cc",
    "cc/runtime/hide_callees.cc",
    "cc/runtime/invoke_op.cc",
    "cc/runtime/record_ops.cc",
    "cc/runtime/registration.cc",
    "cc/runtime/run_op.cc",
    "cc/runtime/spare_threads.cc",
    "cc/runtime/tf_kernel_runner.cc",
    "cc/runtime/variant_zeros.cc",
    "cc/transform/call_graph.cc",
    "cc/transform/effects.cc",
    "cc/transform/emitter.cc",
    "cc/transform/expand_calls.cc",
    "cc/transform/function_body.cc",
    "cc/transform/handles.cc",
    "cc/transform/liveness.cc",
    "cc/transform/placement.cc",
    "cc/transform/prepare_graph.cc",
    "cc/transform/recursion_optimizer.cc",
    "cc/transform/resolve_calls.cc",
    "cc/transform/spread_calls.cc",
    "cc/transform/verify.cc",
]

# Every header of every room, for Bazel; setup.py finds them by the compiler's dependency files.
HEADERS = [
    "cc/base/call_path.h",
    "cc/base/names.h",
    "cc/base/options.h",
    "cc/base/status.h",
    "cc/base/tensorflow_compat.h",
    "cc/executor/call_lives.h",
    "cc/executor/conditions.h",
    "cc/executor/device_memory.h",
    "cc/executor/draft.h",
    "cc/executor/frame.h",
    "cc/executor/frame_tag.h",
    "cc/executor/graph_regions.h",
    "cc/executor/kernel_runner.h",
    "cc/executor/liveness.h",
    "cc/executor/program.h",
    "cc/executor/record.h",
    "cc/executor/scalar_ops.h",
    "cc/executor/run.h",
    "cc/executor/scheduler.h",
    "cc/executor/slabs.h",
    "cc/executor/slots.h",
    "cc/executor/value.h",
    "cc/executor/worker.h",
    "cc/executor/worker_inline.h",
    "cc/ops/stray_kernels.h",
    "cc/runtime/composite_pass.h",
    "cc/runtime/contributions.h",
    "cc/runtime/flat_stack.h",
    "cc/runtime/hide_callees.h",
    "cc/runtime/invoke_op.h",
    "cc/runtime/record_ops.h",
    "cc/runtime/run_op.h",
    "cc/runtime/spare_threads.h",
    "cc/runtime/tf_kernel_runner.h",
    "cc/transform/call_graph.h",
    "cc/transform/effects.h",
    "cc/transform/emitter.h",
    "cc/transform/expand_calls.h",
    "cc/transform/function_body.h",
    "cc/transform/handles.h",
    "cc/transform/liveness.h",
    "cc/transform/placement.h",
    "cc/transform/prepare_graph.h",
    "cc/transform/recursion_optimizer.h",
    "cc/transform/resolve_calls.h",
    "cc/transform/sections.h",
    "cc/transform/spread_calls.h",
    "cc/transform/verify.h",
]

# The pybind11 module tensorflow_recursion._native; links to the library above.
MODULE_SOURCES = [
    "cc/python/module.cc",
]

# GoogleTest sources, one per tested file, of the scheduler one per theme; all of them become one program.
TEST_SOURCES = [
    "tests/cc/base/call_path_test.cc",
    "tests/cc/base/names_test.cc",
    "tests/cc/executor/dead_inputs_test.cc",
    "tests/cc/executor/device_memory_test.cc",
    "tests/cc/executor/frame_tag_test.cc",
    "tests/cc/executor/frame_test.cc",
    "tests/cc/executor/graph_regions_test.cc",
    "tests/cc/executor/partition_test.cc",
    "tests/cc/executor/program_test.cc",
    "tests/cc/executor/record_test.cc",
    "tests/cc/executor/scalar_ops_test.cc",
    "tests/cc/executor/scheduler_deaths_test.cc",
    "tests/cc/executor/scheduler_depth_test.cc",
    "tests/cc/executor/scheduler_errors_test.cc",
    "tests/cc/executor/scheduler_loops_test.cc",
    "tests/cc/executor/scheduler_records_test.cc",
    "tests/cc/executor/scheduler_test.cc",
    "tests/cc/executor/scheduler_workers_test.cc",
    "tests/cc/executor/slots_test.cc",
    "tests/cc/executor/value_test.cc",
    "tests/cc/runtime/contributions_test.cc",
    "tests/cc/runtime/flat_stack_test.cc",
    "tests/cc/runtime/record_ops_test.cc",
    "tests/cc/runtime/spare_threads_test.cc",
    "tests/cc/transform/call_graph_test.cc",
    "tests/cc/transform/effects_test.cc",
    "tests/cc/transform/expand_calls_test.cc",
    "tests/cc/transform/placement_test.cc",
    "tests/cc/transform/prepare_graph_test.cc",
    "tests/cc/transform/recursion_optimizer_test.cc",
    "tests/cc/transform/resolve_calls_test.cc",
    "tests/cc/transform/spread_calls_test.cc",
    "tests/cc/transform/verify_test.cc",
]

# The device that tests take for a GPU: a plugin for TensorFlow, a library of its own.
FAKE_GPU_SOURCES = [
    "tests/cc/fake_gpu/device.cc",
    "tests/cc/fake_gpu/kernels.cc",
]

# Helpers that only tests use.
TEST_HEADERS = [
    "tests/cc/fake_gpu/memory.h",
    "tests/cc/executor/fake_runner.h",
    "tests/cc/executor/live_tensors.h",
    "tests/cc/executor/partitions.h",
    "tests/cc/executor/scheduler_fixture.h",
    "tests/cc/executor/test_graphs.h",
    "tests/cc/runtime/run_graph.h",
    "tests/cc/transform/graphs.h",
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
