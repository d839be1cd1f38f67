"""The lines of Python that made the operators of bodies, in errors that name such an operator.

TensorFlow says of a node of the main graph where it was made. Nodes of bodies it knows only by name, and takes them for
nodes of the main graph that happen to be called the same.
"""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
import re
from collections.abc import Sequence

import tensorflow as tf

from tensorflow_recursion import calls, names
from tensorflow_recursion._tf import functions, graphs, origins
from tensorflow_recursion._tf.origins import Origin
from tensorflow_recursion.explanations import is_ours

# A node, after the function that it is in if TensorFlow knows it: {{function_node cond_true_7}}{{node Log}}.
_NODE = re.compile(r"(?:\{\{function_node ([^{}\s]+)\}\})?\{\{node ([^{}\s]+)\}\}")
# The function in whose body a dynamic call failed, after the tf.functions around it: they come first in the message, or
# after what a dataset says.
_FAILED_FUNCTIONS = re.compile(r"(?:\{\{function_node [^{}\s]+\}\} ?)+(?!\{\{node)")
_FUNCTION = re.compile(r"\{\{function_node ([^{}\s]+)\}\}")
# A call that would have resources of several devices.
_SEVERAL_DEVICES = re.compile(
    r"resource edge connects colocation groups with incompatible .*dst node is name='([^']+)' \(op='"
    + re.escape(names.INVOKE)
)
# Calls in what XLA was to compile, and the functions that it was compiling, the innermost first: branches, for example,
# and at last the trace of a tf.function.
_UNCOMPILED = re.compile(r"Detected unsupported operations .*" + re.escape(names.OP_PREFIX) + r"\w+ \(No registered")
_COMPILED = re.compile(r"tf2xla conversion failed while converting ([^\s\[]+)")
# What Keras 3 calls the tf.function that it lets XLA compile, and Keras 2, by a name that users may also take.
_STEP_OF_KERAS, _STEP_OF_KERAS_2 = "one_step_on_data", "run_step"
# Calls in a function of stock TensorFlow's Defun, whose gradient the runtime makes, not Python.
_CALL_IN_STOCK_DEFUN = re.compile(r"No gradient defined for op: " + re.escape(names.INVOKE))
# Where TensorFlow is to write down a dataset that calls.
_DATASET_WITH_CALLS = f"{names.INVOKE} is stateful"
# The gradient of a tf.py_function that ran again before it.
_TAPE_GONE = re.compile(r"KeyError: b'pyfunc_\d+'")
# A call that is at too great a depth, and the function that it calls.
_TOO_DEEP = re.compile(r"Recursion too deep.*: call of '([^']+)'")
# Before the calls that led to a node that failed.
_CALLS = "\n\t in call"
# After the node that failed: the conditionals and loops around it in the function, innermost first.
_NODES_AROUND = re.compile(r"\n\t \[\[([^\[\]\s{}]+)\]\]")
# An operator that Grappler has moved into the branch that needs it, and a branch of which it has made a further one.
_MOVED = re.compile(r"_tfg_cf_sunk_.*$")
_SPECIALIZED = re.compile(r"_tfg_region_specialized_.*$")
# An operator of such a branch, which has the name of the conditional behind its own.
_IN_SPECIALIZED = re.compile(r"_tfg_inlined_.*$")
# The check of a result's shape at the end of a body, by what states that shape.
_CHECK = re.compile(r"(?:^|/)(output_shapes|output_signature)_(\d+)$")
_IS_OF_SHAPE = "is not compatible with expected shape"
# What comes before the name of a node whose conditional or loop the runtime has taken apart.
_AROUND = re.compile(r"^.*/(?:then|else|branch\d*|cond|body)/_\d+/")
# A further body of a function is called F__copy1, and is made where F is.
_COPY = re.compile(re.escape(names.COPY_SUFFIX) + r"\d+$")


def show_in_errors() -> None:
    """From now on, let the errors of sessions, of tf.functions and of datasets tell the lines of bodies."""
    origins.extend_errors(described, described_eagerly)


def described_eagerly(message: str) -> str:
    """What to say of the error of an eager operator that runs or writes down a dataset, and of nodes that it names.

    The graph of their functions is known by the numbers of traces, which no two graphs have in common.
    """
    if _DATASET_WITH_CALLS in message:
        return (
            "TensorFlow takes a dataset that calls recursive functions for one that may have a state. To save an "
            "iterator of it, set options.experimental_external_state_policy of a tf.data.Options to "
            "tf.data.experimental.ExternalStatePolicy.IGNORE, and use dataset.with_options(options). A SavedModel "
            "cannot have it as an attribute: make it in the tf.function that reads it\n"
        )
    library = next((found for trace in names.traces_in(message) if (found := calls.library_of_trace(trace))), None)
    return "" if library is None else described(message, library.graph)[0]


def described(message: str, graph: tf.Graph) -> tuple[str, list[str]]:
    """What to say of the nodes of bodies that a message names, and the names of these nodes.

    Args:
      message: of an error, with TensorFlow's marks in double braces.
      graph: the session's, or the tf.function's.
    """
    texts, found = [], []
    if (call := _SEVERAL_DEVICES.search(message)) is not None:
        texts.append(
            f"Call {call[1]!r}: the function that it calls reads variables of several devices, and a call can have "
            "those of one only; read the others where the function is called, and pass what was read as arguments\n"
        )
    if _UNCOMPILED.search(message) is not None:
        texts.append(
            f"XLA has no form for calls of recursive functions (operator {names.INVOKE}), whose depth depends on "
            f"values; {_without_xla(_COMPILED.findall(message))}\n"
        )
    if _CALL_IN_STOCK_DEFUN.search(message) is not None:
        texts.append(
            "TensorFlow's own Defun differentiates its functions by itself, and calls of recursive functions are "
            "differentiated in Python; define what calls them with tensorflow_recursion's Defun\n"
        )
    if _TAPE_GONE.search(message) is not None and (_CALLS in message or names.traces_in(message)):
        texts.append(
            "TensorFlow keeps what the gradient of a tf.py_function needs of its last run alone, and a recursion runs "
            "it many times; write tf.custom_gradient around tf.numpy_function, one for the value and one for the "
            "gradient\n"
        )
    for function, node in _NODE.findall(message):
        origins_of_node = _origins(graph, message, function, node)
        if len(origins_of_node) > 1:
            texts.append(f"{len(origins_of_node)} operators have this name, in branches of which one ran; it failed\n")
        if origins_of_node:
            texts += [_statement(message, function, node), _endlessness(graph, message, node)]
        texts += [_description(node, origin) for origin in origins_of_node]
        found += [node] if origins_of_node else []
    return "".join(texts), found


def _without_xla(compiled: Sequence[str]) -> str:
    """What to write so that XLA does not compile functions, of which the last is the trace of a tf.function."""
    name = names.of_tf_function(compiled[-1]) if compiled else ""
    in_keras = "write jit_compile=False in Model.compile of Keras, which compiles by default where there is a GPU"
    if name == _STEP_OF_KERAS:
        return in_keras
    in_function = "leave out jit_compile=True of the tf.function"
    return f"{in_function} '{name}'" if name not in ("", _STEP_OF_KERAS_2) else f"{in_function}, or {in_keras}"


def _statement(message: str, function: str, node: str) -> str:
    """What to say of a node that checks the shape of a result; nothing of other nodes."""
    check = _CHECK.search(node)
    if check is None or _IS_OF_SHAPE not in message:
        return ""
    around = [function] if function else _failed_functions(message)
    owner = node.partition("/")[0] if "/" in node else next(reversed(around), "")
    where = f"Function '{names.of_user(owner)}'" if owner else "Result of a function"
    return f"{where}: output {check[2]} does not have the shape that {check[1]} states\n"


def _endlessness(graph: tf.Graph, message: str, node: str) -> str:
    """What to say of a call that is too deep because every call of its function makes it again; nothing of others."""
    too_deep, (function, _, call) = _TOO_DEEP.search(message), node.partition("/")
    if too_deep is None or names.of_user(function) != too_deep[1]:
        return ""
    if not functions.always_runs(functions.function_in(graph, function), call):
        return ""
    text = (
        f"Function {too_deep[1]!r} calls itself under no condition, so no call of it is the last one; call it in a "
        "branch of a tf.cond"
    )
    if not tf.compat.v1.executing_eagerly_outside_functions():
        text += (
            ". (Python's `if` goes by what is known while the body is traced. Without eager execution `n == 0` is "
            "False for every tensor n, which is no number; write tf.cond(tf.equal(n, 0), ...))"
        )
    return f"{text}\n"


def _failed_functions(message: str) -> list[str]:
    """The functions in which a dynamic call failed, the innermost last."""
    return [name for text in _FAILED_FUNCTIONS.findall(message) for name in _FUNCTION.findall(text)]


def _origins(graph: tf.Graph, message: str, function: str, node: str) -> list[Origin]:
    """Where a node was made; nothing for those of the main graph, and those of which nothing is known.

    More than one place if the branches of a conditional that ran by itself have nodes of that name.
    """
    if function:
        return _origins_in(graph, function, node)
    if failed := _failed_functions(message):
        around = _NODES_AROUND.findall(message.partition("{{node " + node + "}}]]")[2].partition(_CALLS)[0])
        for name in reversed(failed):
            if found := _origins_in(graph, name, node) or _origins_in_branches(graph, name, around, node):
                return found
    prefix, _, name = node.partition("/")  # in a static graph, the node `Log` of F is called F/Log
    if not name or graphs.has_operation(graph, node):
        return []
    owner = _COPY.sub("", prefix)
    return _origins_in(graph, owner, name) or _origins_of_maker(graph, owner, name)


def _origins_in_branches(graph: tf.Graph, function: str, around: Sequence[str], node: str) -> list[Origin]:
    """Where a node was made that is in a function which a conditional or a loop of `function` runs.

    Args:
      graph: the tf.function's.
      function: the function that failed.
      around: names of the conditionals and loops around the node, innermost first; what they are in comes after them.
      node: the name of the node.
    """
    inner = [function]
    for name in reversed(around):
        inner = [run for known in inner for run in functions.run_by(functions.function_in(graph, known), name)] or inner
    return [origin for known in inner for origin in _origins_in(graph, known, node)] if inner != [function] else []


def _origins_in(graph: tf.Graph, function: str, node: str) -> list[Origin]:
    node = _IN_SPECIALIZED.sub("", node)
    if (moved := _MOVED.sub("", node)) != node:
        return _origins_in_trace(graph, function, moved)
    known = functions.function_in(graph, _SPECIALIZED.sub("", function))
    if known is None:
        return []
    if (origin := origins.origin_in(known, node)) is not None:
        return [origin]
    return [found for run, inner in functions.taken_apart(known, node) for found in _origins_in(graph, run, inner)]


def _origins_of_maker(graph: tf.Graph, function: str, node: str) -> list[Origin]:
    """Where the conditional, loop or call was made in whose place the runtime put a node of its own."""
    known = functions.function_in(graph, function)
    parts = [] if known is None else functions.taken_apart(known, node)
    inner = [found for run, rest in parts for found in _origins_of_maker(graph, run, rest)]
    maker = None if inner or known is None else functions.maker_of(known, node)
    if maker is None:
        return inner
    return [dataclasses.replace(origin, name=maker) for origin in _origins_in(graph, function, maker)]


def _origins_in_trace(graph: tf.Graph, function: str, node: str) -> list[Origin]:
    """Where a node was made that may be in any function of the same trace; nothing unless exactly one has it."""
    suffix = names.trace_suffix(function)
    known = [name for name in functions.function_names(graph) if suffix and names.trace_suffix(name) == suffix]
    found = [origin for name in known for origin in _origins_in(graph, name, node)]
    return found if len(found) == 1 else []


def _description(node: str, origin: Origin) -> str:
    """Where a node was made, in the words in which TensorFlow says it of a node of the main graph."""
    shown = names.shown(_AROUND.sub("", _IN_SPECIALIZED.sub("", origin.name or node)))
    lines = [f"Detected at node {shown!r} defined at (most recent call last):", *origin.lines(is_ours)]
    if forward := origin.forward_lines(is_ours):
        lines += ["It computes a gradient of what was defined at (most recent call last):", *forward]
    return "\n  ".join(lines) + f"\nNode: {shown!r}\n"
