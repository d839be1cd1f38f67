"""Several files of a room in one compilation, as cmake/unity.cmake does: TensorFlow's headers are read once for all."""
# SPDX-License-Identifier: Apache-2.0

# How many files go together. More than with CMake, which precompiles the headers: here each compilation reads them.
_FILES = 16

# A message of the compiler names the file that was joined, not the joint one.
_JOIN = """for file in $(SRCS); do echo "#line 1 \\"$$file\\""; cat "$$file"; done > $@"""

def unity(name, srcs):
    """Joins `srcs` into as few files as need be, of nearly equal size. Returns the labels to compile in their place."""
    groups = (len(srcs) + _FILES - 1) // _FILES
    joined = []
    for group in range(groups):
        joined.append("%s_%d.cc" % (name, group + 1))
        native.genrule(
            name = "%s_%d" % (name, group + 1),
            srcs = srcs[group * len(srcs) // groups:(group + 1) * len(srcs) // groups],
            outs = joined[-1:],
            cmd = _JOIN,
        )
    return joined
