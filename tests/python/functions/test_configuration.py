"""session_config, transform_graph, and loading the library."""
# SPDX-License-Identifier: Apache-2.0

import sys
import types

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import _loader

tf1 = tf.compat.v1

# --- Configuration ------------------------------------------------------------------------------------------------


def entries(config):
    return [e for e in config.graph_options.rewrite_options.custom_optimizers if e.name == "function_transformation"]


def test_session_config_adds_entry_and_keeps_what_is_set():
    config = tf1.ConfigProto(inter_op_parallelism_threads=3)
    config.graph_options.rewrite_options.custom_optimizers.add().name = "other"
    before = config.SerializeToString(deterministic=True)
    result = tfr.session_config(config, max_depth=100, workers=2)
    assert config.SerializeToString(deterministic=True) == before
    assert result.inter_op_parallelism_threads == 3
    rewrite = result.graph_options.rewrite_options
    assert [e.name for e in rewrite.custom_optimizers] == ["other", "function_transformation"]
    assert rewrite.min_graph_nodes == -1
    assert rewrite.disable_tfg_optimizer
    (entry,) = entries(result)
    assert (entry.parameter_map["max_depth"].i, entry.parameter_map["workers"].i) == (100, 2)


def test_session_config_has_one_entry_when_applied_again():
    config = tfr.session_config(tfr.session_config(max_depth=7), workers=1)
    config.graph_options.rewrite_options.custom_optimizers.add().name = "function_transformation"
    (entry,) = entries(tfr.session_config(config))
    assert (entry.parameter_map["max_depth"].i, entry.parameter_map["workers"].i) == (7, 1)


# --- Debugging ----------------------------------------------------------------------------------------------------


def test_transform_graph_hands_graph_and_names_to_native_module(monkeypatch, fib):
    seen = []
    native = types.SimpleNamespace(transform_graph=lambda graph_def, names: (seen.append(names), graph_def)[1])
    monkeypatch.setitem(sys.modules, "tensorflow_recursion._native", native)
    monkeypatch.setattr(tfr, "_native", native, raising=False)
    y = fib(3)
    tf.identity(y, name="z")
    graph = tf1.get_default_graph()
    assert tfr.transform_graph(graph, [y, y.op, "z:0"]) == graph.as_graph_def()
    assert tfr.transform_graph(graph.as_graph_def(), y) == graph.as_graph_def()
    assert seen == [["Fib:0", "Fib", "z:0"], ["Fib:0"]]


# --- Loading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("running", ["2.21.0", "2.21.1", "2.21.0-rc1"])
def test_load_is_allowed_when_minor_version_is_same(running):
    _loader.check_version("2.21.0", running)


@pytest.mark.parametrize("running", ["2.20.0", "2.2.1", "3.21.0"])
def test_load_is_refused_when_minor_version_differs(running):
    with pytest.raises(ImportError, match="pip install --force-reinstall --no-cache-dir --no-deps") as error:
        _loader.check_version("2.21.0", running)
    assert "2.21.0" in str(error.value) and running in str(error.value)


def test_load_is_refused_when_library_is_missing(monkeypatch):
    monkeypatch.setattr(_loader, "LIBRARY", "nowhere.so")
    with pytest.raises(ImportError, match=r"not built.*nowhere\.so.*pip install"):
        _loader.load()


def test_version_is_a_version():
    assert tfr.__version__.count(".") == 2
