"""How recursive functions run: the switch of a session, and what holds for calls outside of sessions."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import numbers
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tensorflow_recursion import _native, names

# The least value of each option that is a number, and the allowed values of each that is a word.
_LEAST = {names.MAX_DEPTH: 1, names.WORKERS: 0}
_WORDS = {names.ON_FALLBACK: ("warn", "error")}
_FLAGS = (names.COMPILE,)


def session_config(
    config: tf.compat.v1.ConfigProto | None = None, *, on_fallback: str | None = None, **options: int
) -> tf.compat.v1.ConfigProto:
    """Make a session configuration in which recursive functions run as one static graph.

    Args:
      config: what to start from; left unchanged. Everything the user set stays set, but for two fields of
        `graph_options.rewrite_options`: `min_graph_nodes` becomes -1 (no graph is too small), and
        `disable_tfg_optimizer` True. The latter's passes find nothing to do in a static graph, but their time grows
        faster than the graph: a third of the first run's with 1,600 conditionals in a body.
      **options: options of static execution:
        max_depth (int >= 1): how many frames deep calls may nest; one more ends the run in `ResourceExhaustedError`.
          The default is 2,000,000.
        workers (int >= 0): how many threads share the work of one run at most; 0, the default, lets the runtime choose.
        compile (bool): whether functions that compute with single numbers run as bytecode. True unless said otherwise;
          results are the same.
        on_fallback ("warn" or "error"): what happens when calls cannot be made static, and run dynamically, or when
          a `tf.function` with calls cannot be made one program, and its calls run one by one: a `RuntimeWarning` for
          each function (the default), or a `FailedPreconditionError` that says the same. None leaves what `config`
          says.

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
    rewrite.disable_tfg_optimizer = True
    return result


def set_static_execution(enabled: bool) -> None:
    """Turn static execution of calls outside of TF1 sessions on or off, for the whole process.

    It is on from the start, unless the environment variable `TENSORFLOW_RECURSION_STATIC` is `0`. It concerns calls in
    a `tf.function`, in functions of `tf.data`, and in SavedModels made of these. Every call that begins afterwards
    obeys, also one in a function that was traced before. The calls in a session's own graph do not: they go by its
    configuration. Those in functions that the graph contains, of its datasets for example, need both.

    Args:
      enabled: False lets every call run dynamically, through TensorFlow's function runtime: many times slower, with the
        same results.

    Raises:
      TypeError: if `enabled` is not a bool.

    Examples:
      >>> tfr.config.set_static_execution(False)
      >>> tfr.config.is_static_execution()
      False
      >>> tfr.config.set_static_execution(True)
    """
    _change(is_on=_checked_bool("set_static_execution", "enabled", enabled))


def is_static_execution() -> bool:
    """Tell whether calls outside of TF1 sessions are made static.

    Returns:
      What `set_static_execution` or the environment variable `TENSORFLOW_RECURSION_STATIC` has said last.

    Examples:
      >>> tfr.config.is_static_execution()
      True
    """
    return bool(_native.static_settings()["is_on"])


@contextlib.contextmanager
def static_execution(enabled: bool) -> Iterator[None]:
    """Turn static execution on or off as `set_static_execution` does, and back at the end of a `with` block.

    Args:
      enabled: as of `set_static_execution`. It holds for the whole process, for calls in other threads too.

    Yields:
      None.

    Raises:
      TypeError: if `enabled` is not a bool.

    Examples:
      >>> with tfr.config.static_execution(False):
      ...     tfr.config.is_static_execution()
      False
    """
    before = is_static_execution()
    set_static_execution(_checked_bool("static_execution", "enabled", enabled))
    try:
        yield
    finally:
        set_static_execution(before)


def set_options(**options: int | str) -> None:
    """Set options of static execution for calls outside of TF1 sessions, for the whole process.

    A function that has an option of its own, as `max_depth` of a decorator, goes before. A session has its own options,
    see `session_config`.

    Args:
      **options: `max_depth`, `workers`, `compile`, `on_fallback`, as of `session_config`. What is not named stays.

    Raises:
      ValueError: if an option is unknown, or its value is not one that it may have.

    Examples:
      >>> tfr.config.set_options(max_depth=100_000)
      >>> tfr.config.get_options()["max_depth"]
      100000
      >>> tfr.config.set_options(max_depth=2_000_000)
    """
    for name, value in options.items():
        _set_option(tf.compat.v1.AttrValue(), name, value, "set_options")
    _change(**options)


def get_options() -> dict[str, int | str]:
    """Tell the options of static execution of calls outside of TF1 sessions.

    Returns:
      The values of `max_depth`, `workers`, `compile` and `on_fallback` by name.

    Examples:
      >>> tfr.config.get_options()["on_fallback"]
      'warn'
    """
    return {name: value for name, value in _native.static_settings().items() if name != "is_on"}


def outermost_calls() -> dict[str, int]:
    """Count the calls outside of TF1 sessions' graphs that have begun in this process.

    Returns:
      How many ran statically, `"static"`, and how many that might have done so ran dynamically, `"dynamic"`. Calls that
      a body makes are part of the call around them.

    Examples:
      >>> sorted(tfr.config.outermost_calls())
      ['dynamic', 'static']
    """
    return dict(_native.outermost_calls())


_changes = threading.Lock()  # two threads may set options at the same time, and no change may be lost


def _change(**settings: Any) -> None:
    with _changes:
        _native.set_static_settings({**_native.static_settings(), **settings})


def _checked_bool(function: str, name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{function}: {name} is {value!r}, expected True or False")
    return value


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


def _set_option(attribute: Any, name: str, value: object, function: str = "session_config") -> None:
    """Set an entry of a parameter map to the value of an option, if that is one; errors name `function`."""
    if name in _WORDS:
        if value not in _WORDS[name]:
            wanted = " or ".join(f'"{word}"' for word in _WORDS[name])
            raise ValueError(f"{function}: {name} is {value!r}, expected {wanted}")
        attribute.s = str(value).encode()
        return
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise ValueError(f"{function}: {name} is {value!r}, expected True or False")
        attribute.b = value
        return
    if name not in _LEAST:
        known = ", ".join(sorted([*_LEAST, *_FLAGS, *_WORDS]))
        raise ValueError(f"{function}: unknown option {name!r}; the known ones are: {known}")
    least = _LEAST[name]
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not least <= int(value) < 2**63:
        raise ValueError(f"{function}: {name} is {value!r}, expected an integer >= {least}")
    attribute.i = int(value)
