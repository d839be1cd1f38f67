"""Functions of a SavedModel that call each other, which TensorFlow's loader takes only in an order without cycles.

So such functions are kept from the loader, which is given all others. They go to the function library as they are,
under new names.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import function as stock
from tensorflow.python.framework import function_def_to_graph, ops
from tensorflow.python.ops import control_flow_util_v2, custom_gradient
from tensorflow.python.saved_model import function_deserialization as loader

from tensorflow_recursion._tf import copies, functions, handles
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion._tf.nodes import CONDITIONALS
from tensorflow_recursion._tf.replacements import Replacements
from tensorflow_recursion._tf.saving import without_hint

# A function that is given a node and new names of functions, and changes the names in the node: those of functions and
# of what belongs to them.
Rename: TypeAlias = Callable[[Any, Mapping[str, str]], None]

# The name scope of a body that is built from its definition.
BODY = "body"
_FUNCTIONS_ATTRIBUTE = "_recursion_loaded_functions"
_GRADIENT_TYPE = "_gradient_op_type"


def install(call: str, new_name: Callable[[str, dict[str, str]], str], rename: Rename) -> None:
    """Let TensorFlow's loader load functions that are called by the operator `call`.

    Args:
      call: the operator.
      new_name: makes a name that this process does not have, of one in a file and of what is remembered of the file.
      rename: changes the names in a node.
    """
    load, dependencies, fix = loader.load_function_def_library, loader._list_function_deps, loader.fix_node_def

    def load_library(library: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        library = without_hint(library)
        called_here = called(library, [], call)
        if not called_here:
            return dict(load(library, *args, **kwargs))
        memory: dict[str, str] = {}
        new_names = {name: new_name(name, memory) for name in sorted(called_here)}
        own = [
            _renamed(function, new_names, rename)
            for function in library.function
            if function.signature.name in called_here
        ]
        gradients = _renumber_gradients(library, own)
        traced = [stock._from_definition(definition) for definition in own]
        for function in traced:
            functions.add_to_eager_context(function)
        with _given(traced):
            made = load(_without(library, called_here, call, new_names, rename), *args, **kwargs)
        for name, (function, count) in gradients.items():
            gradient = made[function]
            gradient._num_positional_args = count  # as the loader does it where it sees the operator
            gradient._arg_keywords = [f"grad_{i}" for i in range(count)]
            ops.RegisterGradient(name)(loader._gen_gradient_func(gradient))
        return dict(made)

    def list_dependencies(function: Any, *args: Any) -> set[str]:
        rest = function_pb2.FunctionDef(node_def=[node for node in function.node_def if node.op != call])
        return set(dependencies(rest, *args))

    def fix_node(node: Any, *args: Any) -> None:
        if node.op != call:
            fix(node, *args)

    loader.load_function_def_library, loader._list_function_deps = load_library, list_dependencies
    loader.fix_node_def = fix_node
    loader.function_def_lib = _Converter()


class _Given(threading.local):
    """The functions that those which are being loaded in this thread call."""

    functions: Sequence[TracedFunction] = ()


_being_given = _Given()


@contextlib.contextmanager
def _given(traced: Sequence[TracedFunction]) -> Iterator[None]:
    """Let the graphs of functions that are loaded inside have the functions `traced`."""
    before, _being_given.functions = _being_given.functions, traced
    try:
        yield
    finally:
        _being_given.functions = before


class _Converter:
    """`function_def_to_graph` as TensorFlow's loader sees it."""

    def function_def_to_graph(self, *args: Any, **kwargs: Any) -> tf.Graph:
        """Do what TensorFlow does, in graphs that know the functions that are called."""
        _give(tf.compat.v1.get_default_graph(), _being_given.functions)
        graph = function_def_to_graph.function_def_to_graph(*args, **kwargs)
        _give(graph, _being_given.functions)
        return graph


def inline_copy(
    function: TracedFunction,
    source: copies.Source,
    args: Sequence[tf.Tensor],
    library: tf.Graph,
    *,
    has_its_shapes: bool,
) -> list[tf.Tensor]:
    """Does what `inline` does for a function that was made of `source`.

    Gradients of the user's own (`tf.custom_gradient`) in it read the tensors of the copy where they name those of the
    source, and errors name the lines of Python that made the source. `has_its_shapes` says whether the arguments have
    the static shapes of the source's. Then all tensors have.
    """
    graph = tf.compat.v1.get_default_graph()
    functions.add_sub_functions(graph, function)
    with _callees_are_traced_later.active():
        results, made = _built(function, args, library)
        copies.note_copy(graph, function.cached_definition, source, args, f"{BODY}/")
        copies.read_copies(graph)
        copies.take_over(graph, has_its_shapes=has_its_shapes)
        _keep_graphs(made, has_its_shapes=has_its_shapes)
    return results


def can_be_copied(
    function: TracedFunction, source: copies.Source, call: str, is_gradient: Callable[[Any], bool]
) -> bool:
    """Whether a copy of a traced function has all the derivatives that one more trace of it has.

    It has not where lists are given to the function, or are returned by calls in it, of which the trace does not know
    what they hold. It may be known only when the function is differentiated, and TensorFlow infers what a list holds
    while operations are made one after the other, also through branches and loops. Nor has it where the body computes
    gradients by calls, which `is_gradient` tells: these are made for all that is differentiated along with the body.
    """
    parts = [getattr(part, "graph", None) for part in functions.sub_functions(function)]
    operations = [op for graph in (source.graph, *parts) if graph is not None for op in graph.get_operations()]
    calls = [op for op in operations if op.type == call]
    results = [result for op in calls for result in op.outputs]
    return not any(map(handles.is_of_unknown_kind, [*source.takes, *results])) and not any(map(is_gradient, calls))


class _CalleesAreTracedLater(Replacements):
    """Definitions may name functions that no graph around has yet: those whose bodies are being traced."""

    def _install(self) -> None:
        self.replace(function_def_to_graph, "is_function", lambda name, graph: True)


_callees_are_traced_later = _CalleesAreTracedLater()


def inline(function: TracedFunction, args: Sequence[tf.Tensor], library: tf.Graph) -> list[tf.Tensor]:
    """The body of a function of which nothing but its definition is known, in the default graph; returns its outputs.

    Args:
      function: what to build.
      args: its arguments, captured tensors included.
      library: the graph whose functions the body may call.
    """
    results, made = _built(function, args, library)
    _keep_graphs(made, has_its_shapes=False)
    return results


def _built(
    function: TracedFunction, args: Sequence[tf.Tensor], library: tf.Graph
) -> tuple[list[tf.Tensor], list[tf.Operation]]:
    """The outputs of a body that is built in the default graph, and its operations."""
    graph = tf.compat.v1.get_default_graph()
    for known in library._functions.values():
        if not graph._is_function(known.name):
            graph._add_function_recursive(known)
    definition = function.cached_definition
    graph_def, tensor_names = function_def_to_graph.function_def_to_graph_def(definition)
    names = [arg.name for arg in definition.signature.input_arg]
    nodes = [node for node in graph_def.node if node.name not in names]
    for node in nodes:  # arguments are there before the body is
        sources = [source for source in node.input if source.lstrip("^") not in names or not source.startswith("^")]
        del node.input[:]
        node.input.extend(sources)
    _drop_unknown_colocations(nodes)
    read = {source.lstrip("^").split(":")[0] for node in nodes for source in node.input}
    given = {f"{name}:0": arg for name, arg in zip(names, args, strict=True)}
    outputs = [tensor_names[definition.ret[arg.name]] for arg in definition.signature.output_arg]
    del graph_def.node[:]
    graph_def.node.extend(nodes)
    del graph_def.library.function[:]
    before = set(graph.get_operations())
    computed = [output for output in dict.fromkeys(outputs) if output not in given]
    inputs = {name: arg for name, arg in given.items() if name.split(":")[0] in read}
    results = tf.graph_util.import_graph_def(graph_def, inputs, computed, name=BODY)
    by_name = {**given, **dict(zip(computed, results, strict=True))}
    return [by_name[output] for output in outputs], [op for op in graph.get_operations() if op not in before]


def _drop_unknown_colocations(nodes: list[Any]) -> None:
    """Drop what colocates a node with one that is not among `nodes`, as happens when a body is cut in two."""
    known = {f"loc:@{node.name}".encode() for node in nodes}
    for node in nodes:
        if "_class" in node.attr:
            kept = [name for name in node.attr["_class"].list.s if name in known]
            del node.attr["_class"].list.s[:]
            node.attr["_class"].list.s.extend(kept)


def _keep_graphs(operations: list[tf.Operation], *, has_its_shapes: bool) -> None:
    """Make the graphs of branches and loop bodies once, as for control flow that Python made: gradients change them."""
    pending = list(operations)
    while pending:
        op = pending.pop()
        for attribute, function, inputs, shapes in _parts(op):
            graph = _graph_of(op, function, inputs, shapes)
            setattr(op, attribute, graph)
            source = copies.source_of_branch(_function_around(op.graph, function))
            if source is not None:
                copies.note_copy(graph, _function_around(op.graph, function).cached_definition, source, graph.inputs)
                copies.take_over(graph, has_its_shapes=has_its_shapes)
            graph.name = f"{graph.name}_{ops.uid()}"  # what gradients make of it is called by this name
            pending += graph.get_operations()


def _parts(op: tf.Operation) -> Iterator[tuple[str, str, list[tf.Tensor], list[Any]]]:
    """The branches or the parts of a loop that an operation runs.

    Of each: the attribute of Python's where its graph is kept, its function, its inputs and their static shapes.
    """
    if op.type in CONDITIONALS or op.type in ("Case", "StatelessCase"):
        inputs = list(op.inputs)[1:]
        shapes = [tensor.shape for tensor in inputs]
        if op.type in CONDITIONALS:
            yield "_true_graph", op.get_attr("then_branch").name, inputs, shapes
            yield "_false_graph", op.get_attr("else_branch").name, inputs, shapes
        else:
            for i, branch in enumerate(op.get_attr("branches")):
                yield f"_branch_graph_{i}", branch.name, inputs, shapes
    elif op.type in ("While", "StatelessWhile"):
        shapes = [tf.TensorShape(shape) for shape in op.get_attr("output_shapes")]
        yield "_cond_graph", op.get_attr("cond").name, list(op.inputs), shapes
        yield "_body_graph", op.get_attr("body").name, list(op.inputs), shapes


def _graph_of(op: tf.Operation, function: str, inputs: Sequence[tf.Tensor], shapes: Sequence[Any]) -> Any:
    """The graph of a branch or a loop of `op`, which knows of its handles' variables what is known around it.

    It is made before it can know that: a handle has no shape then, which TensorFlow would take for the variable's.
    """
    is_handle = [tensor.dtype == tf.resource for tensor in inputs]
    open_shapes = [None if is_one else shape for is_one, shape in zip(is_handle, shapes, strict=True)]
    graph = control_flow_util_v2.get_func_graph(op, open_shapes, function)
    pairs = [(inner, outer) for inner, outer, is_one in zip(graph.inputs, inputs, is_handle, strict=True) if is_one]
    for inner, _ in pairs:
        inner.set_shape([])
    handles.set_handle_data([inner for inner, _ in pairs], [handles.handle_data(outer) for _, outer in pairs])
    return graph


def _function_around(graph: tf.Graph | None, name: str) -> Any:
    """The function `name` in the library of `graph` or of a graph around it."""
    while graph is not None:
        if (function := functions.function_in(graph, name)) is not None:
            return function
        graph = getattr(graph, "outer_graph", None)
    return None


def called(library: Any, nodes: Iterable[Any], call: str) -> set[str]:
    """The functions that are called by the operator `call`, in a library or among `nodes`, and all these refer to."""
    by_name = {function.signature.name: function for function in library.function}
    in_functions = (node for function in library.function for node in function.node_def)
    pending = [name for node in (*nodes, *in_functions) if node.op == call for name in _references(node)]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name in by_name and name not in found:
            found.add(name)
            pending += [other for node in by_name[name].node_def for other in _references(node)]
    return found


def _references(node: Any) -> Iterator[str]:
    """Names that may be those of functions in a node."""
    yield node.op
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        elif value.HasField("s"):  # as calls name what they run once they are differentiated
            yield value.s.decode(errors="replace")
        yield from (function.name for function in value.list.func)


def _renamed(function: Any, new_names: Mapping[str, str], rename: Rename) -> Any:
    result = function_pb2.FunctionDef.FromString(function.SerializeToString())
    result.signature.name = new_names[result.signature.name]
    for node in result.node_def:
        rename(node, new_names)
    return result


def _renumber_gradients(library: Any, own: Sequence[Any]) -> dict[str, tuple[str, int]]:
    """Let operators with gradients of the user's own (`tf.custom_gradient`) name them as nobody in this process does.

    Returns, by these names, the functions that compute the gradients, and how many arguments they take. A gradient that
    was not saved stays unregistered: to ask for it is an error.
    """
    saved = {gradient.registered_op_type: gradient.gradient_func for gradient in library.registered_gradients}
    new_names: dict[str, str] = {}
    gradients: dict[str, tuple[str, int]] = {}
    for function in own:
        for node in function.node_def:
            if _GRADIENT_TYPE in node.attr:
                old = node.attr[_GRADIENT_TYPE].s.decode()
                new = new_names.setdefault(old, custom_gradient.generate_name())
                node.attr[_GRADIENT_TYPE].s = new.encode()
                if old in saved:
                    count = sum(not source.startswith("^") for source in node.input)
                    gradients[new] = (saved[old], count)
    return gradients


def _without(library: Any, called: set[str], call: str, new_names: Mapping[str, str], rename: Rename) -> Any:
    """The library without what only calls lead to; its calls have new names."""
    by_name = {function.signature.name: function for function in library.function}
    pending = [name for name in by_name if name not in called]
    kept: set[str] = set()
    while pending:
        name = pending.pop()
        if name in by_name and name not in kept:
            kept.add(name)
            pending += [other for node in by_name[name].node_def if node.op != call for other in _references(node)]
    rest = function_pb2.FunctionDefLibrary.FromString(library.SerializeToString())
    del rest.function[:]
    for function in library.function:
        if function.signature.name in kept:
            rest.function.add().CopyFrom(function)
            for node in rest.function[-1].node_def:
                if node.op == call:
                    rename(node, new_names)
    return rest


def _give(graph: tf.Graph, traced: Sequence[TracedFunction]) -> None:
    """Let a graph know functions, and keep them alive."""
    setattr(graph, _FUNCTIONS_ATTRIBUTE, traced)
    for function in traced:
        functions.add_function(graph, function)
