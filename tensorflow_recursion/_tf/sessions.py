"""Sessions: what they are made of, and preparing a graph in one without running it."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

tf1 = tf.compat.v1


def is_session(value: Any) -> bool:
    """Whether a value is a session, or wraps one as a `MonitoredSession` does that is open."""
    return hasattr(_raw(value), "sess_str")


def config_of(session: Any) -> tf.compat.v1.ConfigProto:
    """The configuration that a session was made with."""
    config = getattr(_raw(session), "_config", None)
    return config if config is not None else tf1.ConfigProto()


def target_of(session: Any) -> str:
    """The address of the server that a session runs on, empty for one in this process."""
    return str(tf.compat.as_str(_raw(session).sess_str))


def prepare(session: tf.compat.v1.Session, fetches: Sequence[str], feeds: Sequence[str]) -> None:
    """Prepare the graph of a session for tensors (`"n:0"`) and operations (`"n"`), and run nothing.

    Raises:
      tf.errors.OpError: if the graph cannot be prepared.
    """
    options = config_pb2.CallableOptions(
        fetch=[name for name in fetches if ":" in name],
        target=[name for name in fetches if ":" not in name],
        feed=feeds,
    )
    session._make_callable_from_options(options)


def _raw(session: Any) -> Any:
    """The session itself, where it is wrapped as a `MonitoredSession` wraps it."""
    return session._tf_sess() if hasattr(session, "_tf_sess") else session
