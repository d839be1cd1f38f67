"""The function library of a graph: what is in it, what is added to it and taken out of it."""
# SPDX-License-Identifier: Apache-2.0

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import function as stock
from tensorflow.python.framework import op_def_registry

tf1 = tf.compat.v1

# How the runtime calls the parts of a conditional or a loop that it takes apart, and in which attributes they are.
_PART = re.compile(r"(then|else|branch|cond|body)(\d*)/_\d+/")
_PART_ATTRIBUTES = {
    "then": "then_branch",
    "else": "else_branch",
    "branch": "branches",
    "cond": "cond",
    "body": "body",
}

# What a stock Defun calls its traced function: has a definition, captured inputs and sub-functions.
TracedFunction: TypeAlias = stock._DefinedFunction


def type_list_key(dtypes: Sequence[tf.DType]) -> str:
    """A short text for a list of dtypes, the one stock Defun appends to the names of overloads."""
    return str(stock._type_list_to_str(dtypes))


def sub_functions(traced: TracedFunction) -> Sequence[Any]:
    """The control flow branches and other functions that the traced body made, or those that a `tf.function` calls."""
    made = getattr(traced, "_sub_functions", None)
    return list(traced.children if made is None else made.values())


def nodes_of(traced: TracedFunction) -> Iterator[Any]:
    """The nodes of a function, of its branches and loops, and of the `tf.function`s that it calls.

    The functions that were traced along with it are left out: to ask an older trace of one for its definition would
    make that known again.
    """
    for part in [traced, *sub_functions(traced)]:
        if part is traced or type(part) is not type(traced):
            yield from part.cached_definition.node_def


def referred_to(node: Any) -> set[str]:
    """The names of the functions in the attributes of a node."""
    found: set[str] = set()
    for value in node.attr.values():
        functions = [value.func] if value.HasField("func") else value.list.func
        found.update(function.name for function in functions if function.name)
    return found


def num_outputs(node: Any) -> int | None:
    """How many outputs a node has; None if its operator is not known, or the node lacks the attribute that tells."""
    definition = op_def_registry.get(node.op)
    if definition is None:
        return None
    count = 0
    for output in definition.output_arg:
        key = output.type_list_attr or output.number_attr
        if not key:
            count += 1
        elif key in node.attr:
            count += len(node.attr[key].list.type) if output.type_list_attr else node.attr[key].i
        else:
            return None
    return count


def nodes_reached(names: Iterable[str], find: Callable[[str], Any], stops_at: str = "") -> Iterator[Any]:
    """The nodes of functions of these names, and of all functions that they refer to.

    Args:
      names: the functions.
      find: finds a function by its name; None if it is not known.
      stops_at: an operator. The functions that it runs are left out.
    """
    pending = list(dict.fromkeys(names))
    seen = set(pending)
    while pending:
        function = find(pending.pop())
        for node in () if function is None else function.cached_definition.node_def:
            yield node
            new = set() if node.op == stops_at else referred_to(node) - seen
            seen |= new
            pending += new


def called_by(traced: TracedFunction, call: str, callee: str) -> set[str]:
    """The names of the functions that a function calls by the operator `call`, which has them in its attribute."""
    return {node.attr[callee].func.name for node in nodes_of(traced) if node.op == call}


def has_function(graph: tf.Graph, name: str) -> bool:
    """Whether the library of `graph` has a function `name`."""
    return bool(graph._is_function(name))


def function_in(graph: tf.Graph, name: str) -> Any:
    """The function `name` in the library of `graph` (a TracedFunction, an imported function, ...), or None."""
    return graph._get_function(name)


def holds(graph: tf.Graph, op_type: str) -> bool:
    """Whether an operator `op_type` stands in a function graph, or in a function that it refers to."""
    if any(op.type == op_type for op in graph.get_operations()):
        return True
    return any(node.op == op_type for known in graph._functions.values() for node in known.cached_definition.node_def)


def function_names(graph: tf.Graph) -> list[str]:
    """The names of the functions in the library of `graph`."""
    return list(graph._functions)


def run_by(function: Any, node: str) -> list[str]:
    """The names of the functions that a node of `function` (of `function_in`) runs: branches, for example."""
    return [run for runs in _runs(function, node).values() for run in runs]


def _runs(function: Any, node: str) -> dict[str, list[str]]:
    """The names of the functions that a node of `function` runs, by the attribute in which they are."""
    nodes = [] if function is None else function.cached_definition.node_def
    values = {name: value for found in nodes if found.name == node for name, value in found.attr.items()}
    return {name: [run.name for run in [value.func, *value.list.func] if run.name] for name, value in values.items()}


def always_runs(function: Any, node: str) -> bool:
    """Whether a node stands in `function` itself (of `function_in`), in no branch of a conditional and in no loop."""
    nodes = {} if function is None else {known.name: known for known in function.cached_definition.node_def}
    seen, pending = {node}, [node]
    while pending and node in nodes:
        known = nodes.get(pending.pop())  # None for an argument
        if known is not None and known.op in ("Switch", "RefSwitch"):
            return False
        sources = [] if known is None else [name.lstrip("^").partition(":")[0] for name in known.input]
        pending += [name for name in sources if name not in seen]
        seen.update(sources)
    return node in nodes


def taken_apart(function: Any, node: str) -> list[tuple[str, str]]:
    """Where a node may come from that the runtime has made of a node of `function` (of `function_in`).

    The runtime takes conditionals, loops and calls apart. In place of the conditional `a/cond` there is then a node
    `a/cond/else/_1/Log`, for example, for the node `Log` of its else branch.

    Returns:
      The names of functions, and what the node is called in each of them.
    """
    found = []
    for slash in re.finditer("/", node):
        runs, rest = _runs(function, node[: slash.start()]), node[slash.end() :]
        part = _PART.match(rest)
        if part is None:  # a call
            found += [(run, rest) for of_attribute in runs.values() for run in of_attribute]
        else:
            of_part = runs.get(_PART_ATTRIBUTES[part[1]], [])
            found += [(run, rest[part.end() :]) for run in of_part[int(part[2] or 0) :][:1]]
    return found


def maker_of(function: Any, node: str) -> str | None:
    """The conditional, loop or call in `function` (of `function_in`) in whose place `node` came, or None.

    The runtime puts nodes of its own where it takes one apart: the conditional `a/cond` becomes switches and merges,
    one of which is called `a/cond/switch_pred/_3`, for example.
    """
    prefixes = [node[: slash.start()] for slash in re.finditer("/", node)]
    return next((prefix for prefix in reversed(prefixes) if run_by(function, prefix)), None)


def add_function(graph: tf.Graph, traced: TracedFunction) -> None:
    """Add a function and its sub-functions to the library of `graph`, unless they are there."""
    with graph.as_default():
        for function in [traced, *sub_functions(traced)]:
            graph._add_function_recursive(function)


def is_traced(function: Any) -> bool:
    """Whether a function of a graph is one that bodies are traced into; the others are those of `tf.function`."""
    kind: type = stock._DefinedFunction
    return isinstance(function, kind)


def add_missing(graph: tf.Graph, functions: Iterable[Any]) -> None:
    """Add those functions to the library of `graph` that it does not have."""
    for function in functions:
        if not graph._is_function(function.name):
            graph._add_function_recursive(function)


def remove_function(graph: tf.Graph, traced: TracedFunction) -> None:
    """Take a function and its sub-functions out of the library of `graph`."""
    for function in [traced, *sub_functions(traced)]:
        if graph._is_function(function.name):
            graph._remove_function(function.name)
    remove_from_eager_context(traced)


def add_to_eager_context(traced: TracedFunction) -> None:
    """Where tf.functions run eagerly, make a function known to the context they run in; elsewhere do nothing.

    It is known there as long as `traced` lives, so the graphs whose calls need it have to keep that.
    """
    if tf1.executing_eagerly_outside_functions() and not context.context().has_function(traced.name):
        with traced._c_func.get() as function:
            context.add_c_function(function)
        if traced._function_deleter is None:  # one that is there already takes it out as well
            traced._function_deleter = stock._DefinedFunctionDeleter(traced.name)


def remove_from_eager_context(traced: TracedFunction) -> None:
    """Let another trace have the name of `traced` in the context where tf.functions run; elsewhere do nothing.

    Where `traced` is known it has what takes it out: that goes with the last reference to it, which is here.
    """
    traced._function_deleter = None


def make_sessions_take_library(graph: tf.Graph) -> None:
    """Let sessions that have run take functions added to `graph` since: they look only if it has a new node."""
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None), graph.device(None):
        tf1.no_op(name="function_defined")
