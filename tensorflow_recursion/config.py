"""The switch: a session configuration that turns static execution on."""
# SPDX-License-Identifier: Apache-2.0

import numbers
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names

# Least value of each option that is a number, and the values of each that is a word.
_LEAST = {names.MAX_DEPTH: 1, names.WORKERS: 0}
_WORDS = {names.ON_FALLBACK: ("warn", "error")}
_FLAGS = (names.COMPILE,)


def session_config(
    config: tf.compat.v1.ConfigProto | None = None, *, on_fallback: str | None = None, **options: int
) -> tf.compat.v1.ConfigProto:
    """Make a session configuration in which recursive functions run as one static graph.

    Args:
      config: what to start from; left unchanged. Everything the user set stays set, but for
        `graph_options.rewrite_options.min_graph_nodes`, which becomes -1 (no graph is too small).
      **options: options of static execution:
        max_depth (int >= 1): how deep calls may nest before the run ends in `ResourceExhaustedError`.
        workers (int >= 0): most threads that share the work of one run; 0 lets the runtime choose.
        compile (bool): whether functions that compute with single numbers run as bytecode. True unless said otherwise;
          results are the same.
        on_fallback ("warn" or "error"): what happens when calls cannot be made static, and run dynamically: a
          `RuntimeWarning` for each function (the default), or a `FailedPreconditionError` that says the same. None leaves
          what `config` says.

    Returns:
      A new `ConfigProto` with exactly one custom optimizer `function_transformation`.

    Raises:
      ValueError: if an option is unknown, or its value is not one of those above.
      TypeError: if `config` is not a ConfigProto.

    Source: `RewriterConfig.custom_optimizers` of TensorFlow (tensorflow/core/protobuf/rewriter_config.proto).

    Examples:
      >>> config = tfr.session_config(tf1.ConfigProto(allow_soft_placement=True), max_depth=100_000)
      >>> [entry.name for entry in config.graph_options.rewrite_options.custom_optimizers]
      ['function_transformation']
      >>> with tf1.Session(config=config) as session:
      ...     print(session.run(tf.constant(1)))
      1
    """
    if config is not None and not isinstance(config, tf.compat.v1.ConfigProto):
        raise TypeError(f"session_config: config is a {type(config).__name__}, expected a ConfigProto")
    result = tf.compat.v1.ConfigProto()
    if config is not None:
        result.CopyFrom(config)
    rewrite = result.graph_options.rewrite_options
    optimizer = _single_entry(rewrite)
    given: dict[str, int | str] = {**options} if on_fallback is None else {**options, "on_fallback": on_fallback}
    for name, value in given.items():
        _set_option(optimizer.parameter_map[name], name, value)
    rewrite.min_graph_nodes = -1
    return result


def _single_entry(rewrite: Any) -> Any:
    """The optimizer's entry in a RewriterConfig: the first one there is, later ones removed, or a new one."""
    entries = rewrite.custom_optimizers
    found = [i for i, entry in enumerate(entries) if entry.name == names.OPTIMIZER]
    for index in reversed(found[1:]):
        del entries[index]
    return entries[found[0]] if found else entries.add(name=names.OPTIMIZER)


def has_switch(config: tf.compat.v1.ConfigProto) -> bool:
    """Whether static execution is on in sessions with this configuration."""
    rewrite = config.graph_options.rewrite_options
    is_there = any(entry.name == names.OPTIMIZER for entry in rewrite.custom_optimizers)
    return is_there and not rewrite.disable_meta_optimizer


def _set_option(attribute: Any, name: str, value: object) -> None:
    """Set an entry of a parameter map to the value of an option, if that is one."""
    if name in _WORDS:
        if value not in _WORDS[name]:
            wanted = " or ".join(f'"{word}"' for word in _WORDS[name])
            raise ValueError(f"session_config: {name} is {value!r}, expected {wanted}")
        attribute.s = str(value).encode()
        return
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise ValueError(f"session_config: {name} is {value!r}, expected True or False")
        attribute.b = value
        return
    if name not in _LEAST:
        known = ", ".join(sorted([*_LEAST, *_FLAGS, *_WORDS]))
        raise ValueError(f"session_config: unknown option {name!r}; the known ones are: {known}")
    least = _LEAST[name]
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not least <= int(value) < 2**63:
        raise ValueError(f"session_config: {name} is {value!r}, expected an integer >= {least}")
    attribute.i = int(value)
