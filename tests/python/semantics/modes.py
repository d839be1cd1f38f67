"""The modes in which the small programs run: dynamically, and statically on one worker or several, on one device, two
devices or two processes. "frames" compiles nothing, all other static modes what can be compiled."""
# SPDX-License-Identifier: Apache-2.0

import collections

# The options of static execution, and how deep a recursion is that is called deep.
Mode = collections.namedtuple("Mode", "options depth")
MODES = {
    "dynamic": Mode(None, 100_000),
    "static1": Mode({"workers": 1}, 100_000),
    "static4": Mode({"workers": 4}, 100_000),
    "frames": Mode({"workers": 4, "compile": False}, 100_000),
    "devices": Mode({}, 3000),
    "processes": Mode({}, 200),
}
STATIC = [name for name in MODES if name != "dynamic"]
IN_ONE_PROCESS = [name for name in MODES if name != "processes"]
