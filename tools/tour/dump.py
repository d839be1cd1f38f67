"""Runs the tours' programs and writes down what the library and TensorFlow make of them: graphs, program, frames.

    python tools/tour/dump.py build/docs/tour.json

Nothing is made up: graphs are what TensorFlow itself dumps before and after each of its passes
(TF_DUMP_GRAPH_PREFIX), the program and the frames are what the library logs (cc/program/program_text.h,
cc/executor/run_log.h).
"""
# SPDX-License-Identifier: Apache-2.0

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

MODULES = "meta_optimizer=5,optimization_registry=5,program_text=1,run_log=1"
# What each picture shows, and the end of the name of TensorFlow's dump of it.
STAGES = {
    "main": "main.before_opt_group_pre_placement",
    "transformed": "after_MetaOptimizer_iteration_0_function_transformation",
    "optimized": "after_opt_group_post_rewrite_for_exec_phase_2000_SpreadCallsPass",
    "partition": "main.before_opt_group_post_partitioning",
    "composite": "after_opt_group_post_partitioning_phase_1000_CompositePass",
}
ATTRIBUTES = ("function", "index", "call_id")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=pathlib.Path, help="the JSON file to write")
    parser.add_argument("--child", nargs=2, metavar=("PROGRAM", "DIR"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return _run(args.child[0], pathlib.Path(args.child[1]))
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps({name: _dump(name) for name in ("fib", "power")}, indent=1) + "\n")


def _dump(program: str) -> dict[str, Any]:
    """Runs `program` in a process of its own, because TensorFlow reads the environment when it is loaded."""
    with tempfile.TemporaryDirectory() as directory:
        environment = dict(
            os.environ, TF_DUMP_GRAPH_PREFIX=directory, TF_CPP_VMODULE=MODULES, TF_CPP_MIN_LOG_LEVEL="0", PYTHONPATH="."
        )
        command = [sys.executable, __file__, "-", "--child", program, directory]
        child = subprocess.run(command, env=environment, capture_output=True, text=True)
        if child.returncode != 0:
            sys.exit(f"{program} failed:\n{child.stderr}")
        result = json.loads((pathlib.Path(directory) / "functions.json").read_text())
        result["graphs"] = {stage: _graph(pathlib.Path(directory), name) for stage, name in STAGES.items()}
    lines = re.findall(r" (program_text|run_log)\.cc:\d+\] ?(.*)", child.stderr)
    result["program"] = [text for module, text in lines if module == "program_text" and text]
    result["frames"] = [text for module, text in lines if module == "run_log"]
    return result


def _run(program: str, directory: pathlib.Path) -> None:
    import programs
    import tensorflow as tf

    import tensorflow_recursion as tfr

    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    fetch = programs.PROGRAMS[program]()
    graph = tf1.get_default_graph().as_graph_def()
    config = tfr.session_config(workers=1)
    with tf1.Session(config=config) as session:
        result = session.run(fetch, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE))
    functions = [
        {
            "name": function.signature.name,
            "arguments": [argument.name for argument in function.signature.input_arg],
            "outputs": [[output.name, function.ret[output.name]] for output in function.signature.output_arg],
            "nodes": [_node(node) for node in function.node_def],
        }
        for function in graph.library.function
    ]
    text = json.dumps({"functions": sorted(functions, key=lambda f: f["name"]), "result": float(result)})
    (directory / "functions.json").write_text(text)


def _graph(directory: pathlib.Path, name: str) -> list[dict[str, Any]]:
    from google.protobuf import text_format
    from tensorflow.core.framework import graph_pb2

    (path,) = (p for p in directory.iterdir() if re.search(re.escape(name) + r"(_\d+)?\.pbtxt$", p.name))
    return [_node(node) for node in text_format.Parse(path.read_text(), graph_pb2.GraphDef()).node]


def _node(node: Any) -> dict[str, Any]:
    """What a picture shows of a NodeDef."""
    result: dict[str, Any] = {"name": node.name, "op": node.op, "inputs": list(node.input)}
    for name in ATTRIBUTES:
        if name in node.attr:
            value = node.attr[name]
            result[name] = value.s.decode() if value.WhichOneof("value") == "s" else value.i
    if "f" in node.attr:
        result["callee"] = node.attr["f"].func.name
    for branch in ("then_branch", "else_branch"):
        if branch in node.attr:
            result[branch] = node.attr[branch].func.name
    if node.op == "Const" and node.attr["value"].tensor.tensor_shape.ByteSize() == 0:
        import tensorflow as tf

        result["value"] = tf.make_ndarray(node.attr["value"].tensor).item()
    return result


if __name__ == "__main__":
    main()
