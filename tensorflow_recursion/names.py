"""The names that the package shares with the operator library: operators, attributes, suffixes of functions."""
# SPDX-License-Identifier: Apache-2.0

OPTIMIZER = "function_transformation"

INVOKE = "Recursion>Invoke"
RETAIN = "Recursion>Retain"
RECALL = "Recursion>Recall"
CONTRIBUTE = "Recursion>Contribute"
CONTRIBUTE_NONE = "Recursion>ContributeNone"
COLLECT = "Recursion>Collect"
TOTAL = "Recursion>Total"

CALLEE = "f"
FORWARD = "forward"
RECORD_OF = "record_of"
OUTPUT_SHAPES = "output_shapes"
FUNCTION = "function"
TYPE = "T"
INPUTS_ON_HOST = "_input_hostmem"
OUTPUTS_ON_HOST = "_output_hostmem"

MANGLED_SUFFIX = "__fn"
FORWARD_SUFFIX = "__forward"
BACKWARD_SUFFIX = "__backward"
GRADIENT_SUFFIX = "__gradient"
