"""The modes in which the small programs run.

In sessions: dynamically, and statically on one worker or several, on one device, two devices or two processes. "frames"
compiles nothing, all other static modes what can be compiled. Without a session, where static is the default: in eager
mode, and in a `tf.function` (runners.py). Control flow is v2 in both, whatever `control_flow` says.
"""
# SPDX-License-Identifier: Apache-2.0

import collections

import pytest

# The options of static execution, and how deep a recursion is that is called deep.
Mode = collections.namedtuple("Mode", "options depth")
_SESSIONS = {
    "dynamic": Mode(None, 100_000),
    "static1": Mode({"workers": 1}, 100_000),
    "static4": Mode({"workers": 4}, 100_000),
    "frames": Mode({"workers": 4, "compile": False}, 100_000),
    "devices": Mode({}, 3000),
    "processes": Mode({}, 200),
}
MODES = {**_SESSIONS, "tf.function": Mode({}, 100_000), "eager": Mode({}, 100_000)}

SESSIONS = list(_SESSIONS)
# Where a test builds a graph and runs parts of it. Eager mode has none: what is built has run.
GRAPHS = [*SESSIONS, "tf.function"]
STATIC_SESSIONS = [name for name in SESSIONS if name != "dynamic"]
STATIC_GRAPHS = [name for name in GRAPHS if name != "dynamic"]
STATIC = [name for name in MODES if name != "dynamic"]

# This is for tests whose results are as good when they are computed at once.
everywhere = pytest.mark.parametrize("mode", MODES, indirect=True)
