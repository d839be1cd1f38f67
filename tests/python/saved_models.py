"""SavedModels that a fresh process loads, as a server would."""
# SPDX-License-Identifier: Apache-2.0

import json

import processes

X = 2.0


def in_fresh_process(program, *arguments):
    """What a program prints at last, as JSON."""
    done = processes.run_python("-c", program, *arguments)
    assert done.returncode == 0, done.stderr[:3000] + done.stderr[-1500:]
    return json.loads(done.stdout.splitlines()[-1])


IMPORTS = """
import json, sys
import tensorflow as tf
import tensorflow_recursion
x = tf.constant(2.0)
"""

LOAD = f"{IMPORTS}module = tf.saved_model.load(sys.argv[1])\n"
