"""Python functions built as tf.function builds them: converted by AutoGraph, with their side effects in order."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import inspect
import itertools
import linecache
import re
import threading
import traceback
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.python.autograph.converters.conditional_expressions import ConditionalExpressionTransformer
from tensorflow.python.autograph.core import ag_ctx, config
from tensorflow.python.autograph.impl import api
from tensorflow.python.autograph.operators import control_flow
from tensorflow.python.autograph.pyct import errors, parser
from tensorflow.python.eager.polymorphic_function import autograph_util
from tensorflow.python.framework import (
    auto_control_deps,
    auto_control_deps_utils,
    op_callbacks,
    op_def_registry,
    ops,
)
from tensorflow.python.ops import custom_gradient, gradients_util
from tensorflow.python.util import tf_stack, traceback_utils

from tensorflow_recursion import names
from tensorflow_recursion._tf import functions, graphs
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion._tf.replacements import Replacements, replace_for_good
from tensorflow_recursion.converted import is_converted

StagingError = api.StagingError  # what AutoGraph raises in the place of errors that it cannot make anew

_FEATURES = tf.autograph.experimental.Feature.EQUALITY_OPERATORS

# Stateful operators that change nothing which another one sees, apart from those that read resources: handles, and
# lists whose operations are in order by their data.
_WITHOUT_EFFECT = ("VarHandleOp", "VariableV2", "TensorArray", "Stack", "Placeholder", names.OP_PREFIX)

# What changes a table, or takes something out of a queue or a dataset's iterator, so that it is another one afterwards.
_TAKES_AWAY = ("LookupTableInsert", "LookupTableRemove", "LookupTableImport", "QueueDequeue", "IteratorGetNext")

# The modules of gradient functions that are not the user's begin so.
_LIBRARIES = ("tensorflow.python.", f"{names.__package__}.")

# How AutoGraph writes a part of a function that it does not know: `(<gast.gast.NamedExpr object at 0x7f>, (m := n))`.
_SYNTAX_NODE = re.compile(r"^\(<gast\.gast\.(\w+) object at 0x[0-9a-f]+>, (.*)\)$")

# Parts of a function that Python runs as functions of their own.
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def call(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], *, autograph: bool) -> Any:
    """Call a Python function, in which control flow may go by tensors if `autograph` says so.

    Then `==` compares tensors, also in TF1 graphs, where by itself it asks whether two are the same object.

    Raises:
      InaccessibleTensorError: if it returns a tensor of a branch or loop.
    """
    if autograph:
        features = None if tf.compat.v1.executing_eagerly_outside_functions() else _FEATURES
        func = autograph_util.py_func_from_autograph(func, features)
    with ag_ctx.ControlStatusCtx(status=ag_ctx.Status.ENABLED if autograph else ag_ctx.Status.DISABLED):
        returned = func(*args, **kwargs)
    for tensor in _tensors_of(returned):
        graphs.check_in_scope(tensor, tf.compat.v1.get_default_graph())
    return returned


def _tensors_of(nest: Any) -> Iterator[tf.Tensor]:
    """The tensors in a nest, and those that ragged tensors and the like in it are made of."""
    for leaf in tf.nest.flatten(nest):
        parts = tf.nest.flatten(leaf, expand_composites=graphs.is_composite(leaf))
        yield from (part for part in parts if isinstance(part, tf.Tensor))


def in_order(build: Callable[[], list[tf.Tensor]]) -> list[tf.Tensor]:
    """What `build` returns, in the default graph, after all its side effects, which happen in their order."""
    with _one_order.active(), auto_control_deps.AutomaticControlDependencies() as order:
        return [order.mark_as_return(tensor) for tensor in build()]


class _OneOrder(Replacements):
    """One order of all side effects in a body and in its branches.

    TensorFlow keeps one for each resource, and one for what takes none, as `tf.print` does. A call or a conditional
    that prints and assigns a variable is in that of the variable alone, and would not wait for what prints before it;
    and an assignment would not wait for the assertion before it.
    """

    def _install(self) -> None:
        exit_of_tensorflow = auto_control_deps.AutomaticControlDependencies.__exit__

        def leave(order: Any, *error: Any) -> None:
            _order_calls(order._graph.get_operations()[order._n_operations :])
            exit_of_tensorflow(order, *error)

        self.replace(auto_control_deps.AutomaticControlDependencies, "__exit__", leave)


_one_order = _OneOrder()


class _EffectsOfGradients(Replacements):
    """What gradient functions return comes after the side effects that they make, which happen in their order.

    A user's own makes some: `tf.print(dy)` in that of a `tf.custom_gradient`. Others make some where all operators are
    watched, as by `tf.debugging.enable_check_numerics`. A `tf.function` runs what has a side effect in any case. The
    gradient of a body is what its results need.
    """

    def _install(self) -> None:
        compute = gradients_util._MaybeCompile
        self.replace(gradients_util, "_MaybeCompile", lambda *args: _after_effects(args[1], lambda: compute(*args)))


_effects_of_gradients = _EffectsOfGradients()


def effects_in_gradients() -> contextlib.AbstractContextManager[None]:
    """Inside, in this thread, whatever reads the result of a gradient function comes after its side effects."""
    return _effects_of_gradients.active()


def _after_effects(op: tf.Operation, compute: Callable[[], Any]) -> Any:
    """What the gradient function of `op` returns, gradients or one gradient; they come after its side effects."""
    if not (_has_users_gradient(op) or op_callbacks.should_invoke_op_callbacks()):
        return compute()
    graph = tf.compat.v1.get_default_graph()
    before = graph._add_control_dependencies, graph.experimental_acd_manager
    try:
        with _one_order.active(), auto_control_deps.AutomaticControlDependencies() as order:
            found = compute()
            made = [made for made in graph.get_operations()[order._n_operations :] if made._is_stateful]
            if _have_effects([made.node_def for made in made], graph, names.INVOKE, lambda _: True):
                _tell_apart(made)
                grads = found if isinstance(found, (list, tuple)) else [found]
                found = [grad if grad is None else order.mark_as_return(grad) for grad in grads]
    finally:
        graph._add_control_dependencies, graph.experimental_acd_manager = before
    return found


def _has_users_gradient(op: tf.Operation) -> bool:
    """Whether the gradient function of `op` may be a user's. Others have no side effects, or run those in functions."""
    try:
        gradient = ops.get_gradient_function(op)
    except LookupError:  # a message says so
        return False
    module = getattr(gradient, "__module__", "")
    return module == custom_gradient.__name__ or not module.startswith(_LIBRARIES)


def _tell_apart(operations: Iterable[tf.Operation]) -> None:
    """Let no two of the operations be the same to TensorFlow's optimizers, which merge what prints the same."""
    for op in operations:
        op._set_attr(names.NUMBER, tf.compat.v1.AttrValue(i=names.new_number()))


def _order_calls(operations: Iterable[tf.Operation]) -> None:
    """Let calls of functions and what has a side effect run one after the other."""
    last = None
    for op in operations:
        if not auto_control_deps.op_is_stateful(op) or op._control_flow_context is not None:
            continue
        if functions.referred_to(op.node_def) or _is_effect(op.type):
            if last is not None:
                op._add_control_input(last)
            last = op


def has_effects(graph: tf.Graph, call: str, has_callee: Callable[[str], bool]) -> bool:
    """Whether something in `graph`, a function graph, has a side effect.

    Args:
      graph: where to look, and whose function library to look into.
      call: the operator that calls functions by their name in its attribute `f`.
      has_callee: whether such a function has side effects.
    """
    return _have_effects([op.node_def for op in graph.get_operations() if op._is_stateful], graph, call, has_callee)


def _have_effects(candidates: Iterable[Any], graph: tf.Graph, call: str, has_callee: Callable[[str], bool]) -> bool:
    """Whether some nodes of a graph, the `candidates`, have a side effect; see `has_effects`."""
    seen: set[str] = set()
    pending: list[Iterable[Any]] = [candidates]
    while pending:
        for node in pending.pop():
            if node.op == call:
                if has_callee(node.attr["f"].func.name):
                    return True
                continue
            callees = functions.referred_to(node)
            if not callees and _is_effect(node.op):
                return True
            for name in callees - seen:
                seen.add(name)
                definition = _definition(graph, name)
                if definition is None:
                    return True
                pending.append(definition.node_def)
    return False


def _definition(graph: tf.Graph, name: str) -> function_pb2.FunctionDef | None:
    function = graph._get_function(name)
    return None if function is None else function.cached_definition


def _is_effect(op_type: str) -> bool:
    """Whether an operator has a side effect. One that is not known to be harmless has one."""
    definition = op_def_registry.get(op_type)
    if definition is not None and not definition.is_stateful:
        return False
    is_harmless = (
        op_type in auto_control_deps_utils.RESOURCE_READ_OPS
        or op_type in auto_control_deps.LEGACY_RANDOM_OPS
        or op_type.startswith(_WITHOUT_EFFECT)
    )
    return not is_harmless


def first_that_changes(traced: TracedFunction) -> tuple[str, str, str] | None:
    """The first node of a function, or of its branches, that may give another value when the function runs again.

    Returns:
      The node, its operator, and what to do, or None. Functions of Python are taken to give the same value.
    """
    for node in functions.nodes_of(traced):
        if node.op in auto_control_deps.LEGACY_RANDOM_OPS:
            return node.name, node.op, "draw by tf.random.stateless_uniform, say, or by a tf.random.Generator"
        if node.op.startswith(_TAKES_AWAY):
            return node.name, node.op, "do it outside of the function, and pass it what is needed"
    return None


def _convert_inner_conditionals() -> None:
    """Let AutoGraph convert a conditional expression in another one too: `a if b else (c if d else e)`."""
    convert = ConditionalExpressionTransformer.visit_IfExp

    def with_parts(self: ConditionalExpressionTransformer, node: Any) -> Any:
        return self.generic_visit(convert(self, node))  # in this order, errors quote a condition as it is written

    replace_for_good(ConditionalExpressionTransformer, "visit_IfExp", with_parts)


_convert_inner_conditionals()


def note_reader(op_type: str) -> None:
    """From now on, let operators of a type only read the variables that they take, where TensorFlow orders effects."""
    auto_control_deps_utils.register_read_only_resource_op(op_type)


def note_without_effect(op_types: Collection[str]) -> None:
    """From now on, let functions leave out operators of these types where nothing reads what they make.

    They count as stateful for TensorFlow's optimizers, which would merge them; a tf.function runs what is stateful in
    any case, in its order.
    """
    is_stateful = auto_control_deps.op_is_stateful
    replace_for_good(auto_control_deps, "op_is_stateful", lambda op: op.type not in op_types and is_stateful(op))


# AutoGraph would convert whatever a body or a `tf.function` calls, `tfr.recursive(f)` with all that this calls in turn.
replace_for_good(config, "CONVERSION_RULES", (config.DoNotConvert("tensorflow_recursion"), *config.CONVERSION_RULES))


def leave_out_of_errors(folder: str) -> None:
    """From now on, let messages of AutoGraph and tracebacks leave out files in `folder`, as they do TensorFlow's own.

    Between the lines of a body and those of its branches are the calls that wrap `tf.cond`, for example.
    """
    replace_for_good(traceback_utils, "_EXCLUDED_PATHS", (*traceback_utils._EXCLUDED_PATHS, folder))
    replace_for_good(traceback_utils, "_process_traceback_frames", _shown_frames)


def _shown_frames(entries: types.TracebackType | None) -> types.TracebackType | None:
    """What TensorFlow keeps of a traceback: frames that are not its own, or else the innermost one.

    TensorFlow's own function takes the instruction that a frame is at by now, not the one where the error came up. So
    AutoGraph takes an error in a branch that returns for one of its own lines, which follows there.
    """
    found = []
    while entries is not None:
        found.append(entries)
        entries = entries.tb_next
    kept = [one for one in found if traceback_utils.include_frame(one.tb_frame.f_code.co_filename)] or found[-1:]
    shown = None
    for one in reversed(kept):
        shown = types.TracebackType(shown, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return shown


def message_of(error: BaseException) -> str:
    """What an error says, without the lines of the user that AutoGraph puts before it."""
    metadata = getattr(error, "ag_error_metadata", None)
    return str(error) if metadata is None else str(metadata.cause_message).partition(": ")[2]


def converted_lines(error: BaseException | None) -> list[tuple[str, int]]:
    """Files and lines of what AutoGraph has converted that an error came through, the innermost first.

    AutoGraph keeps them with the error that it catches, and raises another one.
    """
    while error is not None:
        metadata = getattr(error, "ag_error_metadata", None)
        if metadata is not None:
            return [(frame.filename, frame.lineno) for frame in metadata.translated_stack if frame.is_converted]
        error = error.__context__
    return []


def users_line(file: str, line: int) -> tuple[str, int]:
    """The user's line that AutoGraph has converted to the given one; the given line if it is not converted.

    This knows the lines of the converted function that runs now, and of the functions that are made in it.
    """
    lines = tf_stack._source_mapper_stacks[threading.get_ident()][-1].get_effective_source_map()
    found: tuple[str, int] = lines.get((file, line), (file, line))[:2]
    return found


def unconverted(error: BaseException, skip: Callable[[str], bool]) -> str | None:
    """Which function an error came up in that AutoGraph could not convert, and why; None if there is no such function.

    `skip` says which files are not the user's.
    """
    frames = _users_frames(error, skip)
    unconverted = list(itertools.takewhile(lambda frame: not is_converted(frame.f_code.co_filename), frames))
    if not unconverted:
        return None
    frame, code = unconverted[0], unconverted[0].f_code
    if not _has_source(code):
        return (
            f"AutoGraph could not convert '{_name_of(code)}', because Python finds no source of it: code "
            "that is typed in at a prompt, read from stdin or made by `exec` has none; put it into a file"
        )
    if code.co_name == "<lambda>" and not _can_be_told(code, frame.f_globals):
        return (
            "AutoGraph could not convert a lambda, because several with the same arguments are in one line; give each "
            "a line of its own, or write `def`"
        )
    for frame in unconverted:  # where a function is not converted, those are not that it makes
        if (cause := _why_not_converted(frame.f_code, frame.f_globals)) is not None:
            return f"AutoGraph could not convert '{_name_of(frame.f_code)}' ({cause}); write that in another way"
    return None


def is_in_converted(error: BaseException, skip: Callable[[str], bool]) -> bool:
    """Whether an error came up in a function that AutoGraph has converted; `skip` is as of `unconverted`."""
    frames = _users_frames(error, skip)
    return bool(frames) and is_converted(frames[0].f_code.co_filename)


def is_raised_in_branch(error: BaseException, skip: Callable[[str], bool]) -> bool:
    """Whether a `raise` that AutoGraph has converted made an error, in an `if` or a loop that goes by a tensor.

    That has to be a statement of the same function. `skip` is as of `unconverted`.
    """
    around = None  # the file of what has come last to a statement that goes by a tensor
    file, line = "", 0
    for frame, number in traceback.walk_tb(_before_autograph(error).__traceback__):
        code = frame.f_code
        if code.co_filename == control_flow.__file__ and code.co_name.startswith("_tf_"):
            around = file
        elif not skip(code.co_filename):
            file, line = code.co_filename, number
            around = around if around == file else None
    return around is not None and is_converted(file) and linecache.getline(file, line).lstrip().startswith("raise ")


def _users_frames(error: BaseException, skip: Callable[[str], bool]) -> list[types.FrameType]:
    """The frames of functions that an error came through, the innermost first, but for files to `skip`."""
    walked = traceback.walk_tb(_before_autograph(error).__traceback__)
    frames = [frame for frame, _ in walked if not skip(frame.f_code.co_filename)]
    return [frame for frame in frames if frame.f_code.co_name not in _COMPREHENSIONS][::-1]


def _before_autograph(error: BaseException) -> BaseException:
    """The error that a body raised: AutoGraph raises another one, which need not have the same traceback."""
    before: BaseException | None = error
    while before is not None and hasattr(before, "ag_error_metadata") and message_of(before) == message_of(error):
        error, before = before, before.__context__
    return error


def _has_source(code: types.CodeType) -> bool:
    """Whether AutoGraph has the source of some code; it does not look for that of `exec`."""
    try:
        return code.co_filename != "<string>" and bool(inspect.findsource(code))
    except OSError:
        return False


def _name_of(code: types.CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name).split("<locals>.")[-1].strip("<>")  # Python 3.10 has no A.f


def _why_not_converted(code: types.CodeType, namespace: dict[str, Any]) -> str | None:
    """What AutoGraph says where it fails to convert some code; None if it can convert that."""
    try:
        tf.autograph.to_graph(_function_of(code, namespace))
    except Exception as error:  # of any kind: AutoGraph goes on with the function as it is, whatever it met
        cause = error.__context__ if isinstance(error, api.ConversionError) and error.__context__ else error
        return _SYNTAX_NODE.sub(r"\1: \2", " ".join(str(cause).split()))
    return None


def _function_of(code: types.CodeType, namespace: dict[str, Any]) -> types.FunctionType:
    """A function that only AutoGraph reads."""
    return types.FunctionType(code, namespace, closure=tuple(types.CellType() for _ in code.co_freevars))


def _can_be_told(code: types.CodeType, namespace: dict[str, Any]) -> bool:
    """Whether AutoGraph can tell a lambda from others in its line."""
    try:
        parser.parse_entity(_function_of(code, namespace), ())
    except errors.UnsupportedLanguageElementError:
        return False
    except (AttributeError, SyntaxError):  # which have other causes
        return True
    return True
