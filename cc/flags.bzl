# The flags of the C++, written once: Bazel loads this file, CMakeLists.txt reads the quoted flags of each list. What
# TensorFlow itself asks for (tf.sysconfig) comes on top.
# SPDX-License-Identifier: Apache-2.0

COPTS = [
    "-O2",
    "-DNDEBUG",  # without it container layouts differ from the wheel's
    "-fPIC",
    "-fvisibility=hidden",  # cc/base/export.h marks what is seen from outside
    "-fvisibility-inlines-hidden",
    "-fstack-protector-strong",
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
    "-Wl,-z,relro,-z,now",  # the tables of addresses are read-only once the library is loaded
]
