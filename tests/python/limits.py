"""How long tests wait for what should end.

These limits end what would otherwise wait for ever, and no verdict depends on how fast the machine is: what they limit
takes a fraction of a second on an idle one, and may take a hundred times as long on a busy one.
"""
# SPDX-License-Identifier: Apache-2.0

import time

# What a run, a thread or a process may take. pytest's own limit (pyproject.toml) is higher: it ends the whole process.
HANG_SECONDS = 300


def wait_for(condition):
    """Waits for what another thread or process is about to do."""
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.01)
