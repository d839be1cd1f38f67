"""Graphs damaged at random: a session may refuse or run them, but the process never crashes or hangs."""
# SPDX-License-Identifier: Apache-2.0

import os
import random
import signal
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import processes
import pytest
import switches
import tensorflow as tf
import transformed_graphs
from transformed_graphs import RESULT

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
pytestmark = pytest.mark.thorough
tf1.disable_eager_execution()

PROCESSES = 4
MUTANTS_PER_PROCESS = 140
SLOW_MUTANTS_PER_PROCESS = 3000
SECONDS_PER_PROCESS = 600  # ends what hangs
SLOW_SECONDS_PER_PROCESS = 6600


# --- Graphs to start from -----------------------------------------------------------------------------------------


def make_fib(n):
    fib = tfr.Declare("Fib", [("n", tf.int32)], [("r", tf.int32)])
    tfr.Defun(tf.int32, func_name="Fib", out_names=["r"])(
        lambda n: tf.cond(n < 2, lambda: n, lambda: fib(n - 1) + fib(n - 2))
    )
    return fib(n)


def make_mutual(n):
    """Two functions with two outputs each, a float and a string among them."""
    outputs = [("a", tf.float32), ("b", tf.string)]
    f = tfr.Declare("Left", [("n", tf.int32), ("x", tf.float32)], outputs)
    g = tfr.Declare("Right", [("n", tf.int32), ("x", tf.float32)], outputs)

    def left(n, x):
        a, b = g(n - 1, x * 2)
        return a + x, tf.strings.join([b, "l"])

    define = lambda name: tfr.Defun(tf.int32, tf.float32, func_name=name, out_names=["a", "b"])
    define("Left")(lambda n, x: tf.cond(n < 1, lambda: (x, "."), lambda: left(n, x)))
    define("Right")(lambda n, x: tf.cond(n < 1, lambda: (-x, ","), lambda: f(n - 1, x + 1)))
    a, b = f(n, 1.0)
    return a + tf.cast(tf.strings.length(b), tf.float32)


def make_loops(n):
    """Calls in loops of the main graph and of bodies."""
    f = tfr.Declare("Loop", [("n", tf.int32)], [("r", tf.int32)], output_shapes=[[]])

    @tfr.Defun(tf.int32, func_name="Loop", out_names=["r"])
    def Loop(n):
        step = lambda i, s: (i + 1, s + f(n - 1))
        return tf.cond(n < 1, lambda: 1, lambda: tf.while_loop(lambda i, _: i < 2, step, [0, 0])[1])

    return tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + f(n)), [0, 0])[1]


def make_effects(n):
    w = tf1.get_variable("w", initializer=1, use_resource=True)
    f = tfr.Declare("Effect", [("n", tf.int32)], [])
    g = tfr.Declare("NoArguments", [], [("r", tf.int32)])
    tfr.Defun(func_name="NoArguments", out_names=["r"])(lambda: tf.constant(3))

    @tfr.Defun(tf.int32, func_name="Effect")
    def Effect(n):
        with tf.control_dependencies([w.assign_add(n)]):
            return tf.group(tf.cond(n < 1, lambda: g(), lambda: g() + 1))

    with tf.control_dependencies([w.initializer]):
        call = f(n)
    with tf.control_dependencies([call]):
        return w.read_value() + g()


GRAPHS = [make_fib, make_mutual, make_loops, make_effects]


def base_graph(index):
    """Every graph with calls, in control flow v2 and v1, and transformed."""
    make, form = GRAPHS[index % len(GRAPHS)], index // len(GRAPHS)
    with tf.Graph().as_default() as graph, switches.control_flow_v2(form % 2 == 0):
        tf.identity(make(tf1.placeholder_with_default(3, [])), name=RESULT)
        if form < 2:
            return graph.as_graph_def()
        transformed = tfr.transform_graph(graph, RESULT)
    # All functions, also those that no node names any more: damage may make one do so.
    transformed.library.CopyFrom(graph.as_graph_def().library)
    return transformed


# --- Mutations ----------------------------------------------------------------------------------------------------


def all_nodes(graph_def):
    return [*graph_def.node, *(node for function in graph_def.library.function for node in function.node_def)]


def pick_node(rng, graph_def):
    """One of our operators more often than not."""
    nodes = all_nodes(graph_def)
    ours = [node for node in nodes if node.op.startswith("Recursion>")]
    return rng.choice(ours if ours and rng.random() < 0.7 else nodes)


def forge_attribute(rng, graph_def):
    node = pick_node(rng, graph_def)
    if not node.attr:
        return
    name = rng.choice(sorted(node.attr))
    value = node.attr[name]
    kind = value.WhichOneof("value")
    if kind == "type":
        value.type = rng.choice([0, 1, 3, 7, 10, 20, 21, 103, 999])
    elif kind == "i":
        value.i = rng.choice([-1, 0, 1, 2, 3, 77, 65536, 2**31, 2**62, -(2**63)])
    elif kind == "s":
        names = [function.signature.name for function in graph_def.library.function]
        value.s = rng.choice(
            [b"", b"Nowhere", *(n.encode() for n in names), *(f.encode() for f in ("Fib", "Left", "Right"))]
        )
    elif kind == "func":
        value.func.name = rng.choice(["", "Nowhere", "Add", *(f.signature.name for f in graph_def.library.function)])
    elif kind == "list" and value.list.type:
        types = list(value.list.type)
        rng.choice([lambda: types.append(1), types.pop, lambda: types.insert(0, 7), lambda: types.reverse()])()
        del value.list.type[:]
        value.list.type.extend(types)
    else:
        other = pick_node(rng, graph_def)
        if other.attr:
            value.CopyFrom(other.attr[rng.choice(sorted(other.attr))])


def drop_attribute(rng, graph_def):
    node = pick_node(rng, graph_def)
    if node.attr:
        del node.attr[rng.choice(sorted(node.attr))]


def swap_attributes(rng, graph_def):
    one, other = pick_node(rng, graph_def), pick_node(rng, graph_def)
    for name in sorted(set(one.attr) & set(other.attr)):
        value = tf1.AttrValue()
        value.CopyFrom(one.attr[name])
        one.attr[name].CopyFrom(other.attr[name])
        other.attr[name].CopyFrom(value)


def change_inputs(rng, graph_def):
    node = pick_node(rng, graph_def)
    inputs = list(node.input)
    choices = [lambda: inputs.append("^" + pick_node(rng, graph_def).name)]
    choices.append(lambda: inputs.insert(0, pick_node(rng, graph_def).name))
    if inputs:
        choices.append(lambda: rng.shuffle(inputs))
        choices.append(lambda: inputs.pop(rng.randrange(len(inputs))))

        def rewire():
            inputs[rng.randrange(len(inputs))] = pick_node(rng, graph_def).name

        choices += [rewire, rewire]
    rng.choice(choices)()
    del node.input[:]
    node.input.extend(inputs)


def swap_inputs(rng, graph_def):
    nodes = [node for node in all_nodes(graph_def) if node.input]
    one, other = rng.choice(nodes), rng.choice(nodes)
    i, j = rng.randrange(len(one.input)), rng.randrange(len(other.input))
    one.input[i], other.input[j] = other.input[j], one.input[i]


def drop_node(rng, graph_def):
    name = pick_node(rng, graph_def).name
    for nodes in (graph_def.node, *(function.node_def for function in graph_def.library.function)):
        for i in reversed(range(len(nodes))):
            if nodes[i].name == name and name != RESULT:
                del nodes[i]
    for node in all_nodes(graph_def):
        kept = [one for one in node.input if one.lstrip("^").split(":")[0] != name]
        if rng.random() < 0.7:
            del node.input[:]
            node.input.extend(kept)


def copy_node(rng, graph_def):
    node = rng.choice(graph_def.node)
    graph_def.node.add().CopyFrom(node)
    graph_def.node[-1].name += "_copy"


def change_operator(rng, graph_def):
    pick_node(rng, graph_def).op = rng.choice(
        ["Recursion>Call", "Recursion>Return", "Recursion>Entry", "Recursion>Result", "Recursion>FrameStart"]
        + ["Recursion>KeepAlive", "Recursion>Run", "Recursion>Invoke", "Identity", "NoOp", "Merge", "Switch", "Exit"]
    )


def change_device(rng, graph_def):
    pick_node(rng, graph_def).device = rng.choice(["/cpu:0", "/cpu:7", "/gpu:0", "nonsense", "/job:far/task:3/cpu:0"])


def change_library(rng, graph_def):
    functions = graph_def.library.function
    if not functions:
        return
    function = rng.choice(functions)
    signature = function.signature
    arguments = list(signature.input_arg) + list(signature.output_arg)

    def rename():
        signature.name = rng.choice(["", "Nowhere", functions[0].signature.name])

    def drop_return():
        for key in list(function.ret)[:1]:
            del function.ret[key]

    def retype():
        if arguments:
            rng.choice(arguments).type = rng.choice([0, 1, 3, 7, 10, 20, 21])

    def drop_argument():
        for args in (signature.input_arg, signature.output_arg):
            if args and rng.random() < 0.5:
                del args[rng.randrange(len(args))]

    rng.choice([rename, drop_return, retype, drop_argument, lambda: functions.remove(function)])()


def forge_run(rng, graph_def):
    """A node as the last pass makes it, with a graph that may be anything."""
    inner = tf1.GraphDef()
    inner.CopyFrom(graph_def)
    inner.ClearField("library")
    damage(rng, inner)
    data = bytearray(inner.SerializeToString())
    for _ in range(rng.choice([0, 0, 1, 20])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    node = graph_def.node.add(name="forged_run", op="Recursion>Run")
    node.attr["graph"].s = rng.choice([b"", b"nonsense", bytes(data), bytes(data)])
    node.attr["Tin"].list.SetInParent()
    node.attr["Tout"].list.type.extend([3] * rng.choice([0, 1, 2]))
    for other in graph_def.node:
        if other.name == RESULT:
            other.input.append("^forged_run")


MUTATIONS = [forge_attribute] * 6 + [
    drop_attribute,
    swap_attributes,
    change_inputs,
    change_inputs,
    swap_inputs,
    drop_node,
]
MUTATIONS += [copy_node, change_operator, change_device, change_library, change_library]


def damage(rng, graph_def):
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if graph_def.node:
            rng.choice(MUTATIONS)(rng, graph_def)


def make_mutant(seed, bases):
    rng = random.Random(seed)
    mutant = tf1.GraphDef()
    mutant.CopyFrom(bases[seed % len(bases)])
    (forge_run if rng.random() < 0.1 else damage)(rng, mutant)
    return mutant


# --- Running them -------------------------------------------------------------------------------------------------


def run_mutant(mutant, is_static, initializers):
    """Returns what came of it."""
    config = tfr.session_config(max_depth=2000, workers=2) if is_static else tf1.ConfigProto()
    try:
        transformed_graphs.run(mutant, initializers, config, milliseconds=3000)
    except Exception as error:
        return type(error).__name__
    return "result"


def main(first, count, kind="calls"):
    if kind == "calls":
        bases = [(base_graph(i), []) for i in range(4 * len(GRAPHS))]
    else:  # the parts of the executor
        bases = list(map(transformed_graphs.transformed, transformed_graphs.GRAPHS))
    graphs, initializers = zip(*bases, strict=True)
    for seed in range(int(first), int(first) + int(count)):
        print("mutant", seed, end=" ", flush=True)
        mutant = make_mutant(seed, graphs)
        print(run_mutant(mutant, seed % 5 != 0, initializers[seed % len(bases)]), flush=True)


def check_mutants(first, count, seconds, kind="calls"):
    try:
        result = processes.run_python(__file__, first, count, kind, seconds=seconds)
        end = f"ended by {signal.Signals(-result.returncode).name}" if result.returncode < 0 else result.stderr[-2000:]
        output, failed = result.stdout, result.returncode != 0
    except subprocess.TimeoutExpired as error:
        output, failed, end = error.stdout, True, "hangs"
    lines = [line.split() for line in output.splitlines() if line.startswith("mutant ")]
    last = lines[-1][1] if lines else first
    assert not failed, f"mutant {last} {end}: python {__file__} {last} 1 {kind}"
    assert len(lines) == count
    return [line[2] for line in lines]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("process", range(PROCESSES))
def test_process_survives_when_graph_is_damaged(process):
    outcomes = check_mutants(process * MUTANTS_PER_PROCESS, MUTANTS_PER_PROCESS, SECONDS_PER_PROCESS)
    # Most damage is found, and some is harmless: else the mutations would test nothing.
    assert outcomes.count("result") > MUTANTS_PER_PROCESS // 50
    assert outcomes.count("InvalidArgumentError") + outcomes.count("ValueError") > MUTANTS_PER_PROCESS // 4


def test_process_survives_when_a_return_has_left_its_loop():
    # A seed of the slow runs that stock optimizers died of.
    assert check_mutants(11450, 1, SECONDS_PER_PROCESS) == ["InvalidArgumentError"]


# Seeds of the slow runs that the process died of, by what was damaged.
DEADLY = {
    "a loop variable that comes from inside of its loop": 2002726,
    "an Exit outside of all loops": 3001962,
    "a constant of another dtype than it states": 4002005,
}


@pytest.mark.parametrize("damage", DEADLY)
def test_process_survives_what_it_died_of(damage):
    assert check_mutants(DEADLY[damage], 1, SECONDS_PER_PROCESS) == ["InvalidArgumentError"]


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("process", range(PROCESSES))
@pytest.mark.parametrize("kind", ["calls", "parts"])
def test_process_survives_when_graphs_are_many(process, kind):
    check_mutants(10**6 * (process + 1), SLOW_MUTANTS_PER_PROCESS, SLOW_SECONDS_PER_PROCESS, kind)


if __name__ == "__main__":
    main(*sys.argv[1:])
