"""Functions of a SavedModel that call each other, which TensorFlow's loader takes only in an order without cycles.

So such functions are kept from the loader, which is given all others. They go to the function library as they are,
under new names. A SavedModel that a session wrote has a graph besides, whose calls name them by their new names, too.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import function as stock
from tensorflow.python.framework import function_def_to_graph, ops
from tensorflow.python.ops import custom_gradient
from tensorflow.python.saved_model import function_deserialization as loader
from tensorflow.python.saved_model.load_v1_in_v2 import _EagerSavedModelLoader as SessionGraphLoader

from tensorflow_recursion import names
from tensorflow_recursion._tf import function_calls, functions, importing
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion._tf.hints import without_hint
from tensorflow_recursion._tf.replacements import replace_for_good
from tensorflow_recursion._tf.saving import GIVEN_INPUTS, GradientOfInputs, gradient_of, set_gradient_of

# A function that is given a node and new names of functions, and changes the names in the node: those of functions and
# of what belongs to them.
Rename: TypeAlias = Callable[[Any, Mapping[str, str]], None]

_FUNCTIONS: Attribute[Sequence[TracedFunction]] = Attribute(names.LOADED_FUNCTIONS)  # of graphs


def install(call: str, static: str, new_name: Callable[[str, dict[str, str]], str], rename: Rename) -> None:
    """Let TensorFlow's loader load functions that are called by the operator `call`.

    Args:
      call: the operator.
      static: its attribute that lets calls be static outside of sessions.
      new_name: makes a name that this process does not have. It is given the name in a file, and a dictionary in which
        it remembers its names for that file.
      rename: changes the names in a node.
    """
    load, find_gradient_type = loader.load_function_def_library, loader._get_gradient_op_type
    load_whole, load_graph = SessionGraphLoader.load, SessionGraphLoader.load_graph

    def load_library(library: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        library = without_hint(library)
        called_here = function_calls.reached_by(call, library)
        if not called_here:
            return dict(load(library, *args, **kwargs))
        new_names = _new_names(called_here, new_name)
        own = _renamed_of(library, new_names, rename)
        rest = _without(library, called_here, call, new_names, rename, kwargs.get("saved_object_graph"))
        gradients = _renumber_gradients(library, own, rest.function)
        with _given(_added(own), gradients):
            made = load(rest, *args, **kwargs)
        _register(gradients, made)
        return dict(made)

    def load_session_graph(self: Any, tags: Any, *args: Any, **kwargs: Any) -> Any:
        graph_def = self.get_meta_graph_def_from_tags(tags).graph_def  # the loader itself changes it, too
        called_here = function_calls.reached_by(call, graph_def.library, graph_def.node)
        new_names = _new_names(called_here, new_name)
        if tf.compat.v1.executing_eagerly_outside_functions():
            importing.let_be_static(graph_def, call, static)
        own = _renamed_of(graph_def.library, new_names, rename)
        _renumber_gradients(graph_def.library, own, ())
        graph_def.library.CopyFrom(_without(graph_def.library, called_here, call, new_names, rename))
        for node in graph_def.node if called_here else ():
            rename(node, new_names)
        with _given(_added(own)):
            return load_whole(self, tags, *args, **kwargs)

    def import_session_graph(self: Any, *args: Any) -> None:
        _give(tf.compat.v1.get_default_graph(), _being_given.functions)
        load_graph(self, *args)

    def gradient_type(node: Any) -> Any:  # None: the loader does not warn of it; it is registered here
        return None if gradient_of(node) in _being_given.gradients else find_gradient_type(node)

    replace_for_good(loader, "load_function_def_library", load_library)
    replace_for_good(loader, "_get_gradient_op_type", gradient_type)
    replace_for_good(loader, "function_def_lib", _Converter())
    replace_for_good(SessionGraphLoader, "load", load_session_graph)
    replace_for_good(SessionGraphLoader, "load_graph", import_session_graph)
    _leave_calls_alone(call)


def _leave_calls_alone(call: str) -> None:
    """Let TensorFlow's loader neither follow the names of functions in calls nor change these."""
    dependencies, fix = loader._list_function_deps, loader.fix_node_def

    def list_dependencies(function: Any, *args: Any) -> set[str]:
        rest = function_pb2.FunctionDef(node_def=[node for node in function.node_def if node.op != call])
        return set(dependencies(rest, *args))

    def fix_node(node: Any, *args: Any) -> None:
        if node.op != call:
            fix(node, *args)

    replace_for_good(loader, "_list_function_deps", list_dependencies)
    replace_for_good(loader, "fix_node_def", fix_node)


class _Given(threading.local):
    """What is known in this thread of the functions that are being loaded.

    Attributes:
      functions: those that they call.
      gradients: names of gradients that TensorFlow's loader need not know.
    """

    functions: Sequence[TracedFunction] = ()
    gradients: Collection[str] = ()


_being_given = _Given()


@contextlib.contextmanager
def _given(traced: Sequence[TracedFunction], gradients: Collection[str] = ()) -> Iterator[None]:
    """Inside, functions that are loaded find the functions `traced`, and the loader may lack these `gradients`."""
    before = _being_given.functions, _being_given.gradients
    _being_given.functions, _being_given.gradients = traced, gradients
    try:
        yield
    finally:
        _being_given.functions, _being_given.gradients = before


class _Converter:
    """`function_def_to_graph` as TensorFlow's loader sees it."""

    def function_def_to_graph(self, *args: Any, **kwargs: Any) -> tf.Graph:
        """Do what TensorFlow does, in graphs that know the functions that are called."""
        _give(tf.compat.v1.get_default_graph(), _being_given.functions)
        graph = function_def_to_graph.function_def_to_graph(*args, **kwargs)
        _give(graph, _being_given.functions)
        return graph


def _new_names(called: set[str], new_name: Callable[[str, dict[str, str]], str]) -> dict[str, str]:
    memory: dict[str, str] = {}
    return {name: new_name(name, memory) for name in sorted(called)}


def _added(own: Sequence[Any]) -> list[TracedFunction]:
    """The functions of definitions, which are made known to the eager context."""
    traced = [stock._from_definition(definition) for definition in own]
    for function in traced:
        functions.add_to_eager_context(function)
    return traced


def _renamed_of(library: Any, new_names: Mapping[str, str], rename: Rename) -> list[Any]:
    """The functions of a library that have new names, under these."""
    return [_renamed(each, new_names, rename) for each in library.function if each.signature.name in new_names]


def _renamed(function: Any, new_names: Mapping[str, str], rename: Rename) -> Any:
    result = function_pb2.FunctionDef.FromString(function.SerializeToString())
    result.signature.name = new_names[result.signature.name]
    for node in result.node_def:
        rename(node, new_names)
    return result


@dataclasses.dataclass(frozen=True)
class _Gradient:
    """What computes the gradient of an operator: a function of so many arguments.

    They are the gradients for the operator's results; then, if `num_variables` is not None, its inputs, and handles of
    so many variables.
    """

    function: str
    num_arguments: int
    num_variables: int | None = None


def _renumber_gradients(library: Any, own: Sequence[Any], rest: Sequence[Any]) -> dict[str, _Gradient]:
    """Let operators with gradients of the user's own (`tf.custom_gradient`) name them as nobody in this process does.

    Among the functions of `rest`, such as gradients that call others, TensorFlow does that for gradients that take no
    inputs. One that was not saved would have a name that may be that of any gradient of this process.

    Returns the gradients by these names. One that was not saved stays unregistered: to ask for it is an error.
    """
    saved = {gradient.registered_op_type: gradient.gradient_func for gradient in library.registered_gradients}
    num_arguments = {each.signature.name: len(each.signature.input_arg) for each in library.function}
    new_names: dict[str, str] = {}
    gradients: dict[str, _Gradient] = {}
    nodes = [node for function in own for node in function.node_def]
    nodes += [node for function in rest for node in function.node_def if gradient_of(node) not in saved]
    for node in nodes:
        if (old := gradient_of(node)) is not None:
            new = new_names.setdefault(old, custom_gradient.generate_name())
            set_gradient_of(node, new)
            count = sum(not source.startswith("^") for source in node.input)  # an IdentityN has as many results
            if old + GIVEN_INPUTS in saved:
                function = saved[old + GIVEN_INPUTS]
                gradients[new] = _Gradient(function, num_arguments[function], num_arguments[function] - 2 * count)
            elif num_arguments.get(saved.get(old)) == count:  # else it reads tensors of a function that is not renamed
                gradients[new] = _Gradient(saved[old], count)
    return gradients


def _register(gradients: Mapping[str, _Gradient], made: Mapping[str, Any]) -> None:
    """Register what `_renumber_gradients` returned; `made` are the loaded functions."""
    for name, one in gradients.items():
        gradient = made[one.function]
        gradient._num_positional_args = one.num_arguments  # as the loader does it where it sees the operator
        gradient._arg_keywords = [f"grad_{i}" for i in range(one.num_arguments)]
        of_operator = loader._gen_gradient_func(gradient)
        if one.num_variables is not None:
            of_operator = _given_inputs(of_operator, one.num_variables)
        ops.RegisterGradient(name)(of_operator)


def _given_inputs(gradient: Callable[..., Any], num_variables: int) -> Callable[..., Any]:
    return GradientOfInputs(lambda *args: gradient(None, *args), num_variables).of_operator()


def _without(
    library: Any,
    called: set[str],
    call: str,
    new_names: Mapping[str, str],
    rename: Rename,
    module: Any = None,
) -> Any:
    """The library without what only calls lead to; its calls have new names.

    `module` is a SavedObjectGraph: it has functions as its own, which bodies may call, too.
    """
    of_module = () if module is None else module.concrete_functions
    kept = function_calls.reached_otherwise(call, library, called, of_module)
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
    _FUNCTIONS.set(graph, traced)
    for function in traced:
        functions.add_function(graph, function)
