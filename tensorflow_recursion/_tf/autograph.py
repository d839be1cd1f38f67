"""Python functions called as tf.function calls them: converted by AutoGraph, if they are to be."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.converters.conditional_expressions import ConditionalExpressionTransformer
from tensorflow.python.autograph.core import ag_ctx, config
from tensorflow.python.autograph.pyct import origin_info
from tensorflow.python.eager.polymorphic_function import autograph_util
from tensorflow.python.util import tf_decorator

from tensorflow_recursion._tf import graphs
from tensorflow_recursion._tf.replacements import replace_for_good

_FEATURES = tf.autograph.experimental.Feature.EQUALITY_OPERATORS


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


def _convert_inner_conditionals() -> None:
    """Let AutoGraph convert a conditional expression in another one too: `a if b else (c if d else e)`."""
    convert = ConditionalExpressionTransformer.visit_IfExp

    def with_parts(self: ConditionalExpressionTransformer, node: Any) -> Any:
        return self.generic_visit(convert(self, node))  # in this order, errors quote a condition as it is written

    replace_for_good(ConditionalExpressionTransformer, "visit_IfExp", with_parts)


def _find_lines_of_decorators() -> None:
    """Let AutoGraph say of which lines a decorator made by TensorFlow is, where it converts one.

    It converts the decorator, `tf.Module.with_name_scope` for example, and looks for the file of what that decorates.
    It found none where this is a recursive function, and so gave up with a warning.
    """
    resolve = origin_info.resolve_entity

    def resolve_code(node: Any, source: str, entity: Any) -> None:
        is_decorator = bool(tf_decorator.unwrap(entity)[0])
        resolve(node, source, entity.__code__ if is_decorator else entity)

    replace_for_good(origin_info, "resolve_entity", resolve_code)


_convert_inner_conditionals()
_find_lines_of_decorators()

# AutoGraph would convert whatever a body or a `tf.function` calls, `tfr.recursive(f)` with all that this calls in turn.
replace_for_good(config, "CONVERSION_RULES", (config.DoNotConvert("tensorflow_recursion"), *config.CONVERSION_RULES))
