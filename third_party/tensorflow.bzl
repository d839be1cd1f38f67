"""The installed TensorFlow as a repository: headers, those that come with it too, shared libraries, compile flags."""
# SPDX-License-Identifier: Apache-2.0

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
)

# What an operator library links to; the process that loads it has it in memory already.
cc_library(
    name = "framework",
    srcs = ["lib/libtensorflow_framework.so.2"],
    deps = [":headers"],
)

# What a Python module needs besides: headers of pybind11, of Python.
cc_library(
    name = "module_headers",
    hdrs = glob(["module_include_*/**"]),
    includes = glob(["module_include_*"], exclude_directories = 0),
)

# Stock operators and kernels, for programs that no Python loads them into.
cc_library(
    name = "kernels",
    srcs = ["lib/libtensorflow_cc.so.2"],
    deps = [":framework"],
)
"""

def _tensorflow_impl(ctx):
    root = ctx.path(Label("//:WORKSPACE")).dirname
    python = ctx.os.environ.get("PYTHON")
    if not python:
        local = root.get_child(".venv").get_child("bin").get_child("python")
        python = str(local) if local.exists else str(ctx.which("python3"))
    found = ctx.execute([python, str(ctx.path(Label("//:tools/find_tensorflow.py"))), "--module"])
    if found.return_code != 0:
        fail(found.stderr)
    facts = json.decode(found.stdout)
    ctx.symlink(facts["include"], "include")
    for name in ["libtensorflow_framework.so.2", "libtensorflow_cc.so.2"]:
        ctx.symlink(facts["library_dir"] + "/" + name, "lib/" + name)
    for number, include in enumerate(facts["module_includes"]):
        ctx.symlink(include, "module_include_%d" % number)
    values = (facts["compile_flags"], facts["library_dir"])
    ctx.file("flags.bzl", "TENSORFLOW_COPTS = %r\nTENSORFLOW_LIBRARY_DIR = %r\n" % values)
    ctx.file("BUILD", _BUILD)

tensorflow_repository = repository_rule(
    implementation = _tensorflow_impl,
    environ = ["PYTHON", "VIRTUAL_ENV"],
    local = True,
    doc = "Finds TensorFlow as setup.py does, in the environment of $PYTHON, else of .venv, else of python3.",
)
