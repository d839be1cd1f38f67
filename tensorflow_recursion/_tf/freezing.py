"""Constants in place of variables (`convert_variables_to_constants_v2`) where functions call each other.

TensorFlow's converter follows a variable's handle from node to node, and into the functions that it knows to be called.
Here it learns of one more operator that calls functions, of calls that lead back to where it has been, and of what
reads variables in functions: others are inlined before, recursive ones never.
"""
# SPDX-License-Identifier: Apache-2.0

import types
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import convert_to_constants as converter
from tensorflow.python.framework import op_def_registry, ops
from tensorflow.python.grappler import tf_optimizer

from tensorflow_recursion import names
from tensorflow_recursion._tf import function_calls
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.loading import Rename
from tensorflow_recursion._tf.replacements import replace_for_good

# Of the graphs of TensorFlow's converter.
_HAS_CALLS: Attribute[bool] = Attribute(names.HAS_CALLS)
_FUNCTION_NAMES: Attribute[set[str]] = Attribute(names.FUNCTION_NAMES)

Alternative: TypeAlias = Callable[[Any, set[str], bool], str]

# An attribute of conditionals and loops: whether the runtime takes them apart, to Switch and Merge.
_LOWER = "_lower_using_switch_merge"


def install(
    call: str,
    callee: str,
    type_lists: tuple[str, str],
    alternative: Alternative,
    new_name: Callable[[str, dict[str, str]], str],
    rename: Rename,
    shown: Callable[[str], str],
    snapshot: str,
    variables_of: str,
) -> None:
    """Let TensorFlow convert functions that are called by the operator `call`.

    Args:
      call: the operator.
      callee: its attribute with the function.
      type_lists: its attributes with the types of its inputs: of arguments, then of those that are not passed on.
      alternative: tells which function such a node calls because somebody reads an additional output, "" if nobody
        does; given the node, the names of what is read in the graph or function around it, whether it is a function.
      new_name: makes a name that this process does not have, of one in a graph and of what is remembered of the graph.
      rename: changes the names in a node; takes from it those that belong to its callee and have no new one.
      shown: what messages call a function.
      snapshot: the operator that keeps the values of variables.
      variables_of: the operator that makes variables of these, for each variable behind the snapshot that it takes.
    """
    make, replace = converter._Node.new, converter._replace_variables_by_constants

    def new(node: Any, function: Any, enclosing_graph: Any) -> Any:
        made = make(node, function, enclosing_graph)
        if not _has_calls(enclosing_graph, call):
            return made
        if node.op == call:
            # A gradient that is called anew, to be differentiated, runs nothing but the alternative: no graph has it.
            keys = [key for key in (callee, names.ALTERNATIVE) if key in node.attr]
            followed = [key for key in keys if node.attr[key].func.name in _function_names(enclosing_graph)]
            result = _Call(node, function, enclosing_graph, 0, type_lists[0], followed)
            result.ignored = type_lists[1]
            return result
        if node.op in (snapshot, variables_of):
            return (_Snapshot if node.op == snapshot else _VariablesOf)(node, function, enclosing_graph)
        own = _OWN.get(type(made))
        if function is None or own is None:
            return made
        result = own(node, function, enclosing_graph)
        result.shown = shown
        return result

    def replace_by_constants(converter_data: Any) -> Any:
        if not _has_calls(converter_data, call):
            return replace(converter_data)
        _prepare(converter_data.graph_def, call, alternative)
        converted, indices = replace(converter_data)
        _restore(converted, call, rename)
        if not isinstance(converter_data, converter._SessionConverterData):  # whose functions are in no other's way
            _rename_called(converted, call, new_name, rename)
        return converted, indices

    replace_for_good(converter, "tf_optimizer", types.SimpleNamespace(OptimizeGraph=_optimizer(call)))
    replace_for_good(converter._Node, "new", staticmethod(new))
    replace_for_good(converter, "_replace_variables_by_constants", replace_by_constants)


def _optimizer(call: str) -> Callable[..., Any]:
    """What TensorFlow's converter is to optimize graphs with, where `call` calls functions."""

    def optimize(config: Any, meta_graph: Any, *args: Any, **kwargs: Any) -> Any:
        graph = meta_graph.graph_def
        called = function_calls.reached_by(call, graph.library, graph.node)
        kept = _keep_conditionals(graph, called)
        optimized = tf_optimizer.OptimizeGraph(config, meta_graph, *args, **kwargs)
        _lower_again(optimized, kept)
        return optimized

    return optimize


def _bodies(graph: Any) -> Iterator[tuple[Any, set[str], bool]]:
    """The nodes of the graph and of its functions, the names of what is read there, and whether it is a function."""
    yield graph.node, {name for node in graph.node for name in node.input}, False
    for function in graph.library.function:
        read = {name for node in function.node_def for name in node.input}
        yield function.node_def, read.union(function.ret.values()), True


def _prepare(graph: Any, call: str, alternative: Alternative) -> None:
    """Let the converter find every function that a call may run, and remember the names of functions."""
    known = {function.signature.name for function in graph.library.function}
    for nodes, read, is_function in _bodies(graph):
        for node in nodes:
            name = alternative(node, read, is_function) if node.op == call else ""
            if name in known:
                node.attr[names.ALTERNATIVE].func.name = name
    for function in graph.library.function:
        function.attr[names.NAME_BEFORE].s = function.signature.name.encode()


def _restore(graph: Any, call: str, rename: Rename) -> None:
    """Undo `_prepare`. Nodes name functions by their present names from then on, and calls name none that is not run.

    A function that names one with a new name has a new one in turn: the frozen graph may come into one that has both.
    """
    functions = graph.library.function
    new_names = {function.attr.pop(names.NAME_BEFORE).s.decode(): function.signature.name for function in functions}
    changed = {name for name, now in new_names.items() if name != now}
    mentioned = {name: _mentioned(function) for name, function in zip(new_names, functions, strict=True)}
    while more := {name for name, others in mentioned.items() if name not in changed and others & changed}:
        changed |= more
        new_names.update({name: f"{name}_frozen_{ops.uid()}" for name in sorted(more)})
    for name, (nodes, _, _) in zip([None, *new_names], _bodies(graph), strict=True):
        for node in nodes:
            is_run = names.ALTERNATIVE in node.attr
            node.attr.pop(names.ALTERNATIVE, None)
            if name is not None and name not in changed:
                continue
            if node.op == call and not is_run:
                rename(node, {})
            rename(node, new_names)
    for name, function in zip(new_names, functions, strict=True):
        function.signature.name = new_names[name]


def _mentioned(function: Any) -> set[str]:
    """What the attributes of the nodes of a function say, among it the names of other functions."""
    found: set[str] = set()
    for node in function.node_def:
        for value in node.attr.values():
            found.update([value.func.name, value.s.decode(errors="ignore"), *(f.name for f in value.list.func)])
    return found


def _keep_conditionals(graph: Any, called: set[str]) -> set[tuple[str, str]]:
    """Let conditionals and loops in the functions `called` be, which have no gradient once they are lowered.

    Returns the names of functions and nodes that would have been lowered.
    """
    kept: set[tuple[str, str]] = set()
    for function in graph.library.function:
        for node in function.node_def:
            if function.signature.name in called and _LOWER in node.attr and node.attr[_LOWER].b:
                node.attr[_LOWER].b = False
                kept.add((function.signature.name, node.name))
    return kept


def _lower_again(graph: Any, kept: set[tuple[str, str]]) -> None:
    """Undo `_keep_conditionals`, because the runtime does better with lowered conditionals."""
    for function in graph.library.function:
        for node in function.node_def:
            if (function.signature.name, node.name) in kept:
                node.attr[_LOWER].b = True


def _has_calls(graph: Any, call: str) -> bool:
    """Whether a graph of the converter has nodes of the operator `call`, in functions or not."""

    def find() -> bool:
        definition = graph.graph_def
        in_functions = (node for function in definition.library.function for node in function.node_def)
        return any(node.op == call for nodes in (definition.node, in_functions) for node in nodes)

    return _HAS_CALLS.made(graph, find)


def _function_names(graph: Any) -> set[str]:
    """The names of the functions of a graph of the converter."""
    return _FUNCTION_NAMES.made(graph, lambda: {one.signature.name for one in graph.graph_def.library.function})


class _Caller(converter._FunctionCaller):  # type: ignore[misc]
    """A node that refers to functions by the names that they have in the end."""

    def converted_self(self) -> Any:
        """Do what TensorFlow does, but with the functions' last names: it takes those of when it is first asked."""
        node = super().converted_self()
        graph = self._enclosing_graph
        for attribute in self._function_attributes:
            value = node.node.attr[attribute]
            for function in [value.func] if value.HasField("func") else value.list.func:
                if graph.is_converted_function(function.name):
                    function.name = graph.converted_function_names[function.name]
        return node


class _If(_Caller, converter._If):  # type: ignore[misc]
    pass


class _Case(_Caller, converter._Case):  # type: ignore[misc]
    pass


class _While(_Caller, converter._While):  # type: ignore[misc]
    pass


class _Call(_Caller):
    """A call, which may be of the function in which it stands.

    Attributes:
      ignored: the node's attribute with the types of the inputs that are not passed on.
    """

    ignored: str

    def convert_variable_to_constant(self, incoming_edge: Any, tensor_data: Any) -> None:
        """Do what TensorFlow does, but once for each argument, and not for an input that is no argument."""
        argument = incoming_edge.destination.index
        arguments = len(self.node.attr[self._type_attribute].list.type)
        if argument >= arguments:
            self.converted_self().update_dtype(self.ignored, argument - arguments, tensor_data.dtype)
            return
        done: set[int] = self.__dict__.setdefault("_done", set())
        if argument not in done:
            done.add(argument)
            super().convert_variable_to_constant(incoming_edge, tensor_data)


class _Read(converter._ReadVariable):  # type: ignore[misc]
    """A read of a variable in a function, whose result the function may return as it is."""

    def convert_variable_to_constant(self, incoming_edge: Any, tensor_data: Any) -> None:
        """Do what TensorFlow does, and rename the result of the read where the function returns it, too."""
        super().convert_variable_to_constant(incoming_edge, tensor_data)
        returned = self._function.converted_self().function.ret
        for output, source in returned.items():
            if source == f"{self._node.name}:value:0":
                returned[output] = f"{self._node.name}:output:0"


class _Gather(converter._ResourceGather):  # type: ignore[misc]
    """Rows of a variable, gathered in a function."""

    def convert_variable_to_constant(self, incoming_edge: Any, tensor_data: Any) -> None:
        """What TensorFlow does in main graphs only: a gather of a tensor's rows."""
        old, new = self._node, self.converted_self().node
        function = self._function.converted_self().function
        axis = f"{old.name}/axis"
        new.Clear()
        new.name, new.op = old.name, "GatherV2"
        new.input.extend([*old.input[:2], f"{axis}:output:0", *(name for name in old.input if name.startswith("^"))])
        new.attr["Tparams"].CopyFrom(old.attr["dtype"])
        new.attr["Tindices"].CopyFrom(old.attr["Tindices"])
        new.attr["batch_dims"].CopyFrom(old.attr["batch_dims"])
        new.attr["Taxis"].type = types_pb2.DT_INT32
        if all(node.name != axis for node in function.node_def):
            constant = function.node_def.add(name=axis, op="Const")
            constant.attr["dtype"].type = types_pb2.DT_INT32
            constant.attr["value"].tensor.dtype = types_pb2.DT_INT32
            constant.attr["value"].tensor.tensor_shape.SetInParent()
            constant.attr["value"].tensor.int_val.append(old.attr["batch_dims"].i)


class _Snapshot(converter._Node):  # type: ignore[misc]
    """The values of variables, or constants, which need none."""

    def convert_variable_to_constant(self, incoming_edge: Any, tensor_data: Any) -> None:
        """Take a constant in place of a variable."""
        self.converted_self().update_dtype("T", incoming_edge.destination.index, tensor_data.dtype)


class _VariablesOf(converter._Node):  # type: ignore[misc]
    """New variables, or the constants that are in their place."""

    def convert_variable_to_constant(self, incoming_edge: Any, tensor_data: Any) -> None:
        """Hand a constant on in place of a variable."""
        position = incoming_edge.destination.index - 1  # behind the snapshot
        self.converted_self().update_dtype("T", position, tensor_data.dtype)
        for edge in self.outgoing_edges:
            if edge.source.index == position:
                edge.destination.convertible.convert_variable_to_constant(edge, tensor_data)


class _Other(converter._Node):  # type: ignore[misc]
    """What takes a variable in a function without reading it, or takes no variable at all."""

    def convert_variable_to_constant(self, incoming_edge: Any, tensor_data: Any) -> None:
        """Raises ValueError for what assigns: TensorFlow's would leave a graph that fails where it is built."""
        if _takes_resource(self._node.op, incoming_edge.destination.index):
            function = self.shown(str(self._function))
            raise ValueError(
                f"Function '{function}': node '{self._node.name}' ({self._node.op}) takes a variable that is to become "
                "a constant, and does more than read it; convert a function that only reads its variables"
            )


_OWN: dict[Any, Any] = {
    converter._If: _If,
    converter._Case: _Case,
    converter._While: _While,
    converter._ReadVariable: _Read,
    converter._ResourceGather: _Gather,
    converter._Node: _Other,
}


def _takes_resource(op_type: str, index: int) -> bool:
    definition = op_def_registry.get(op_type)
    if definition is None or index >= len(definition.input_arg):
        return False
    before = definition.input_arg[: index + 1]
    is_list = any(arg.number_attr or arg.type_list_attr for arg in before)
    return not is_list and before[index].type == types_pb2.DT_RESOURCE


def _rename_called(graph: Any, call: str, new_name: Callable[[str, dict[str, str]], str], rename: Rename) -> None:
    """Give the functions that calls lead to new names: those that were left as they are have theirs in this process."""
    memory: dict[str, str] = {}
    called = function_calls.reached_by(call, graph.library, graph.node)
    new_names = {name: new_name(name, memory) for name in sorted(called)}
    for function in graph.library.function:
        function.signature.name = new_names.get(function.signature.name, function.signature.name)
        for node in function.node_def:
            rename(node, new_names)
    for node in graph.node:
        rename(node, new_names)
