# The flags of the C++ build, written once: Bazel loads this file, tools/cxx_build.py executes it. Both languages
# read it, so it holds only assignments of literals. Sources are listed nowhere: whatever lies in a room is built.
# SPDX-License-Identifier: Apache-2.0

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
