"""Each of our operators is taken out of transformed graphs: the run is an error, or nothing has changed."""
# SPDX-License-Identifier: Apache-2.0

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import processes
import pytest
import tensorflow as tf
import transformed_graphs

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
MILLISECONDS = 60_000  # ends what hangs


def run(graph_def, initializers):
    return transformed_graphs.run(graph_def, initializers, tfr.session_config(workers=2), MILLISECONDS)


def outcome(graph_def, initializers, want):
    """What comes of a damaged graph: an error that refuses it, the result `want` of the whole one, or another."""
    try:
        got = run(graph_def, initializers)
    except (ValueError, tf.errors.InvalidArgumentError):
        return "error"
    return "same" if np.array_equal(got, want) else f"{got} instead of {want}"


def without(graph_def, name):
    """The graph without the node `name`; nodes that read it have an input less."""
    result = tf1.GraphDef(versions=graph_def.versions, library=graph_def.library)
    for node in graph_def.node:
        if node.name != name:
            kept = result.node.add()
            kept.CopyFrom(node)
            del kept.input[:]
            kept.input.extend(one for one in node.input if one.lstrip("^").split(":")[0] != name)
    return result


def main(name):
    tf1.disable_eager_execution()
    tf1.enable_control_flow_v2()
    graph_def, initializers = transformed_graphs.transformed(name)
    want = run(graph_def, initializers)
    for node in graph_def.node:
        if node.op.startswith("Recursion>"):
            print(node.op, node.name, end=" ", flush=True)
            print(outcome(without(graph_def, node.name), initializers, want), flush=True)


@pytest.mark.parametrize("name", transformed_graphs.GRAPHS)
def test_graph_without_one_of_our_operators_is_refused_or_the_same(name):
    result = processes.run_python(__file__, name, seconds=600)
    outcomes = [line.split(maxsplit=2) for line in result.stdout.splitlines() if line.startswith("Recursion>")]
    assert result.returncode == 0, (result.returncode, outcomes[-1:], result.stderr[-2000:])
    wrong = [" ".join(line) for line in outcomes if line[-1] not in ("error", "same")]
    assert not wrong
    # A body's operators find their frame without its start; each other operator is needed.
    assert {op for op, _, end in outcomes if end == "same"} <= {"Recursion>FrameStart"}
    assert len(outcomes) > 8


if __name__ == "__main__":
    main(sys.argv[1])
