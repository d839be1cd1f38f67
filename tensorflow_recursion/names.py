"""The names that the package shares with the operator library: operators, attributes, suffixes of functions.

They are written once, in cc/base/names.h; here they are read from the native module.
"""
# SPDX-License-Identifier: Apache-2.0

import itertools
import random
import re

from tensorflow_recursion import _loader

_REBUILD = (
    "the native module of tensorflow_recursion is missing, or older than its Python files; build both with: "
    f"{_loader.BUILD_COMMAND} (make build, in a checkout)"
)
try:
    from tensorflow_recursion._native import NAMES
except ImportError as error:
    raise ImportError(_REBUILD) from error


def _native(key: str) -> str:
    """A name that the C++ has; raises ImportError if the C++ is older, and does not have it."""
    if key not in NAMES:
        raise ImportError(f"{_REBUILD} (it has no name for {key})")
    return NAMES[key]


OPTIMIZER = _native("OPTIMIZER")

OP_PREFIX = _native("OP_PREFIX")
INVOKE = _native("INVOKE_OP")
RETAIN = _native("RETAIN_OP")
RECALL = _native("RECALL_OP")
LIST_OR_ZEROS = _native("LIST_OR_ZEROS_OP")
SNAPSHOT = _native("SNAPSHOT_OP")
VARIABLES_OF = _native("VARIABLES_OF_OP")
HAS_RUN = _native("HAS_RUN_OP")
CONTRIBUTE = _native("CONTRIBUTE_OP")
CONTRIBUTE_NONE = _native("CONTRIBUTE_NONE_OP")
CONTRIBUTE_VIEW = _native("CONTRIBUTE_VIEW_OP")
PART = _native("PART_ATTR")
COLLECT = _native("COLLECT_OP")
TOTAL = _native("TOTAL_OP")
IMPORT = _native("IMPORT_OP")

CALLEE = _native("CALLEE_ATTR")
ARGUMENT_TYPES = _native("ARGUMENT_TYPES_ATTR")
IGNORED_TYPES = _native("IGNORED_TYPES_ATTR")
RESULT_TYPES = _native("RESULT_TYPES_ATTR")
FORWARD = _native("FORWARD_ATTR")
RECORD_OF = _native("RECORD_OF_ATTR")
POSITIONS = _native("POSITIONS_ATTR")
ASSIGNED = _native("ASSIGNED_ATTR")
HAS_SNAPSHOT = _native("HAS_SNAPSHOT_ATTR")
OUTPUT_SHAPES = _native("OUTPUT_SHAPES_ATTR")
FUNCTION = _native("FUNCTION_ATTR")
TYPE = _native("TYPE_ATTR")
INPUTS_ON_HOST = _native("INPUTS_ON_HOST_ATTR")
OUTPUTS_ON_HOST = _native("OUTPUTS_ON_HOST_ATTR")

MAX_DEPTH = _native("MAX_DEPTH_OPTION")
WORKERS = _native("WORKERS_OPTION")
COMPILE = _native("COMPILE_OPTION")
ON_FALLBACK = _native("ON_FALLBACK_OPTION")

STATIC = _native("STATIC_ATTR")
OPTION_PREFIX = _native("OPTION_ATTR_PREFIX")

# Attributes in Python by which we keep something with objects of TensorFlow (_tf/attributes.py).
# - of graphs
LIBRARY = "_recursion_library"
TRACED_BODY = "_recursion_traced_body"
NESTED_CALLS = "_recursion_nested_calls"
COPY = "_recursion_copy"
CONTROL_FLOW_V2 = "_recursion_control_flow_v2"
IS_FOR_INFERENCE = "_recursion_is_for_inference"
IS_WHOLE_LOOK = "_recursion_is_whole_look"
IS_PARTIAL = "_recursion_is_partial"  # of operations, too
IS_CALLED_EAGERLY = "_recursion_is_called_eagerly"
RETURNS_ARRAYS = "_recursion_returns_arrays"
HAS_CHANGED = "_recursion_has_changed"
HAS_SWITCHES = "_recursion_has_switches"
HAS_CALLS = "_recursion_has_calls"
HOLDS = "_recursion_holds"
ASSIGNS = "_recursion_assigns"
RETURNS_OPEN_VARIABLES = "_recursion_returns_variables_of_open_shape"
CONSTANTS = "_recursion_constants"
FUNCTION_NAMES = "_recursion_function_names"
LOADED_FUNCTIONS = "_recursion_loaded_functions"
# - of operations and tensors
TERMS = "_recursion_terms"
IS_GIVEN_WEIGHTS = "_recursion_is_given_weights"
BOUND_BRANCHES = "_recursion_bound_branches"
ZEROS = "_recursion_zeros"
IS_REPLACED = "_recursion_is_replaced"
# - of functions, errors and the like
SOURCE = "_recursion_source"
ORIGINS = "_recursion_origins"
GRADIENT_OF_INPUTS = "_recursion_gradient_of_inputs"
CAME_OUT_OF_A_BODY = "_recursion_came_out_of_a_body"
CHECKED = "_recursion_checked"
IS_OF_RESULTS = "_recursion_is_of_results"  # says what a function returns, and what it should

# Attributes of nodes and functions while they are saved or frozen.
HINT = "_recursion_hint"
ALTERNATIVE = "_recursion_alternative"
NAME_BEFORE = "_recursion_name_before"
# An attribute of nodes that are to be told apart.
NUMBER = "_recursion_number"
# TensorFlow's attribute of nodes: the name under which the gradient of a node is registered.
GRADIENT_TYPE = "_gradient_op_type"

COPY_SUFFIX = _native("COPY_SUFFIX")
MANGLED_SUFFIX = _native("MANGLED_SUFFIX")
TRACE_SUFFIX = _native("TRACE_SUFFIX")
FORWARD_SUFFIX = _native("FORWARD_SUFFIX")
BACKWARD_SUFFIX = _native("BACKWARD_SUFFIX")
GRADIENT_SUFFIX = _native("GRADIENT_SUFFIX")

# What TensorFlow writes before and after the name of a Python function in that of its trace, `__inference_f_12`.
_OF_TENSORFLOW = re.compile(r"^(__(inference|forward|backward)_)+|(_\d+)+$")
# What names of operations cannot have, or not in front. A lambda, for example, is called `<lambda>`.
_NOT_IN_NAMES = re.compile(r"^_+|[^A-Za-z0-9_.]")
_TRACE = re.compile(rf"{TRACE_SUFFIX}\d+")
_OF_TRACE = re.compile(rf".*{TRACE_SUFFIX}\d+")
# What a function's derivatives have behind its name, as fib__backward1__forward2 has.
_OF_DERIVATIVE = re.compile(rf"((?:{FORWARD_SUFFIX}|{BACKWARD_SUFFIX}|{GRADIENT_SUFFIX})\d*)+$")
_OF_GRADIENT = re.compile(rf"_*{GRADIENT_SUFFIX}$")
_OF_FORWARD = re.compile(rf"{FORWARD_SUFFIX}\d+$")
# Where they begin is left to chance: graphs and SavedModels bring the names of other processes along.
_numbers = itertools.count(random.SystemRandom().randrange(10**12, 10**13))


def of_trace(name: str) -> str:
    """A name for one trace of the function `name`, which no other function has, of this process or another one."""
    return f"{name}{TRACE_SUFFIX}{new_number()}"


def new_number() -> int:
    """A number that nothing else has, neither in this process nor in another one."""
    return next(_numbers)


def is_of_trace(name: str) -> bool:
    """Whether `name` is one that `of_trace` made."""
    return _OF_TRACE.fullmatch(name) is not None


def base_of_forward(name: str) -> str:
    """The name of the function whose forward function is called `name`."""
    return _OF_FORWARD.sub("", name)


def base_of_gradient(name: str) -> str | None:
    """The name of the function whose gradient is, as a function, called `name`; None if that is no such name."""
    base = _OF_GRADIENT.sub("", name)
    return None if base == name else base


def shown(name: str) -> str:
    """What messages call a function: its name without the numbers of traces."""
    return _TRACE.sub("", name)


def of_user(name: str) -> str:
    """What the user calls a function, given its name in a graph, or that of its derivative.

    Example: `Pow` for `Pow__fn__forward2`. Because `Pow` is an operator, the function is called `Pow__fn` in the graph.
    """
    return _OF_DERIVATIVE.sub("", shown(name)).removesuffix(MANGLED_SUFFIX)


def of_tf_function(trace: str) -> str:
    """What Python calls a `tf.function`, given the name that TensorFlow gave to one of its traces."""
    return _NOT_IN_NAMES.sub("", _OF_TENSORFLOW.sub("", shown(trace))) or "f"


def trace_in(name: str) -> str | None:
    """The name that `of_trace` made, of a function or of one whose forward or backward function is called `name`."""
    ends = [found.end() for found in _TRACE.finditer(name)]
    return name[: ends[-1]] if ends else None  # the last one: what is traced may have a number of its own


def traces_in(text: str) -> list[str]:
    """The numbers of traces in a text, as `of_trace` writes them."""
    return [str(number) for number in _TRACE.findall(text)]


def trace_suffix(name: str) -> str:
    """The number of the trace in a name, as `of_trace` writes it; "" if there is none."""
    return (traces_in(name) or [""])[-1]


def renumbered(name: str, numbers: dict[str, str]) -> str:
    """The name in this process of a function that another one saved as `name`.

    Args:
      name: the name in the file.
      numbers: the texts of traces in that file, or names of functions without one, and what traces are here; learns
        those of `name`.
    """
    if _TRACE.search(name) is None:
        derivative = _OF_DERIVATIVE.search(name)
        base = name[: derivative.start()] if derivative else name
        return f"{base}{numbers.setdefault(base, of_trace(''))}{name[len(base) :]}"
    return _TRACE.sub(lambda trace: numbers.setdefault(trace.group(), of_trace("")), name)
