"""Recursive functions that are attributes, elements and signatures of what is saved, as tf.functions are."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
import warnings

import numpy as np
import pytest
import tensorflow as tf
from saved_models import IMPORTS, LOAD, in_fresh_process
from tensorflow.core.protobuf import saved_model_pb2

import tensorflow_recursion as tfr

COUNT, NUMBER = tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float32)


@tfr.recursive(input_signature=[COUNT])
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


class Power(tf.Module):
    """w^n by a recursive method, which is also the object's own call."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(2.0)

    @tfr.recursive(input_signature=[COUNT])
    def __call__(self, n):
        if n == 0:
            return 1.0
        return self.w * self(n - 1)


def saved(module, directory, **options):
    """Saves a module, with warnings as errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        tf.saved_model.save(module, str(directory), **options)
    return tf.saved_model.load(str(directory))


def module_with(**attributes):
    module = tf.Module()
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


@pytest.mark.thorough
def test_fresh_process_calls_and_differentiates_what_it_loads(tmp_path):
    saved(module_with(fib=fib, power=Power()), tmp_path)
    program = """
module = tf.saved_model.load(sys.argv[1])
with tf.GradientTape() as tape:
    y = module.power(tf.constant(3))
from tensorflow_recursion import config
assert config.outermost_calls()["dynamic"] == 0
print(json.dumps([int(module.fib(tf.constant(20))), float(y), float(tape.gradient(y, module.power.w))]))
"""
    assert in_fresh_process(IMPORTS + program, tmp_path) == [6765, 8.0, 12.0]


def test_what_was_loaded_is_saved_again(tmp_path):
    loaded = saved(module_with(fib=fib), tmp_path / "first")
    assert int(saved(loaded, tmp_path / "second").fib(10)) == 55


def test_elements_of_lists_tuples_and_dictionaries(tmp_path):
    module = module_with(listed=[fib, [fib]], pair=(tf.Variable(1), fib), named={"a": fib, "b": tf.Variable(2)})
    loaded = saved(module, tmp_path)
    functions = [loaded.listed[0], loaded.listed[1][0], loaded.pair[1], loaded.named["a"]]
    assert [int(function(tf.constant(10))) for function in functions] == [55] * 4


@pytest.mark.thorough
def test_traces_of_calls_come_along(tmp_path):
    @tfr.recursive
    def power(x, n, *, scale=1.0):
        if n == 0:
            return tf.ones_like(x) * scale
        return x * power(x, n - 1, scale=scale)

    @tf.function(input_signature=[NUMBER])
    def in_function(x):
        return power(x, tf.constant(2))

    power(tf.constant([2.0, 3.0]), tf.constant(3))
    power(tf.constant([2.0, 3.0]), tf.constant(3), scale=0.5)
    loaded = saved(module_with(power=power, in_function=in_function), tmp_path)
    n = tf.constant(2)
    assert loaded.power(tf.constant([1.0, 3.0]), n).numpy().tolist() == [1.0, 9.0]
    assert loaded.power(tf.constant([1.0, 3.0]), n, scale=0.5).numpy().tolist() == [0.5, 4.5]
    assert float(loaded.power(tf.constant(4.0), n)) == 16.0  # no eager call has passed a scalar, but in_function does
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.power(tf.constant([1, 2]), n)


def test_methods_of_other_objects_and_static_methods(tmp_path):
    class Holder(tf.Module):
        static = staticmethod(fib)

    holder = Holder()
    holder.power = Power()
    holder.alias = holder.power.__call__
    loaded = saved(holder, tmp_path)
    assert int(loaded.static(tf.constant(10))) == 55
    assert float(loaded.alias(tf.constant(3))) == 8.0
    loaded.power.w.assign(3.0)
    assert float(loaded.alias(tf.constant(2))) == float(loaded.power(tf.constant(2))) == 9.0


def test_variables_that_a_trace_makes_come_along(tmp_path):
    class Lazy(tf.Module):
        w = None

        @tfr.recursive(input_signature=[COUNT])
        def power(self, n):
            if self.w is None:
                self.w = tf.Variable(2.0)
            if n == 0:
                return 1.0
            return self.w * self.power(n - 1)

    loaded = saved(Lazy(), tmp_path)
    assert (float(loaded.power(tf.constant(3))), float(loaded.w)) == (8.0, 2.0)


def test_function_of_a_variable_that_nobody_keeps_is_named(tmp_path):
    w = tf.Variable(2.0)

    @tfr.recursive(input_signature=[COUNT])
    def power(n):
        if n == 0:
            return 1.0
        return w * power(n - 1)

    inner = module_with(power=power)
    serve = tf.function(lambda n: fib(n), input_signature=[COUNT])
    with pytest.warns(RuntimeWarning, match=r"lacks Module.power: (?s:.*)(untracked|not reachable)"):
        tf.saved_model.save(module_with(inner=inner, serve=serve), str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert not hasattr(loaded.inner, "power")
    assert int(loaded.serve(tf.constant(10))) == 55
    with pytest.raises(AssertionError, match="untracked"):  # there TensorFlow needs it
        saved(inner, tmp_path, signatures=power)
    assert float(saved(module_with(power=power, w=w), tmp_path).power(tf.constant(3))) == 8.0


def test_recursive_functions_are_signatures(tmp_path):
    program = f"""{LOAD}
results = [module.signatures[name](n=tf.constant(10)) for name in sys.argv[2:]]
print(json.dumps([float(value) for result in results for value in result.values()]))
"""
    power = Power()
    saved(power, tmp_path / "two", signatures={"a": fib, "b": power.__call__})
    assert in_fresh_process(program, tmp_path / "two", "a", "b") == [55.0, 1024.0]
    saved(power, tmp_path / "one", signatures=fib)
    assert in_fresh_process(program, tmp_path / "one", "serving_default") == [55.0]


def test_recursive_functions_have_aliases(tmp_path):
    power = Power()
    aliases = {"fibonacci": fib, "power": power.__call__, "other": tf.function(lambda: 1, input_signature=[])}
    options = tf.saved_model.SaveOptions(function_aliases=aliases)
    saved(module_with(fib=fib, power=power, other=aliases["other"]), tmp_path, options=options)
    graph = saved_model_pb2.SavedModel.FromString((tmp_path / "saved_model.pb").read_bytes()).meta_graphs[0]
    names = {function.signature.name for function in graph.graph_def.library.function}
    assert sorted(graph.meta_info_def.function_aliases.values()) == sorted(aliases)
    assert names.issuperset(graph.meta_info_def.function_aliases)
    assert options.function_aliases == aliases


def test_only_function_of_a_module_is_its_signature(tmp_path):
    loaded = saved(Power(), tmp_path / "recursive")
    assert float(loaded.signatures["serving_default"](n=tf.constant(3))["output_0"]) == 8.0

    @tf.function(input_signature=[COUNT])
    def serve(k):
        return fib(k)

    loaded = saved(module_with(fib=fib, serve=serve), tmp_path / "both")
    assert int(loaded.signatures["serving_default"](k=tf.constant(10))["output_0"]) == 55
    power = Power()
    assert not saved(module_with(fib=fib, owner=power, power=power.__call__), tmp_path / "none").signatures


def test_function_without_input_signature_is_no_signature(tmp_path):
    @tfr.recursive
    def same(n):
        return n

    with pytest.raises(ValueError, match=r"but got <tfr.recursive 'same'\(n\)>"):
        saved(module_with(same=same), tmp_path, signatures=same)


def fails_where_it_is_saved():
    @tfr.recursive(input_signature=[COUNT])
    def of_rows(n):
        return tf.ones([2, 3]) @ tf.ones([2, 3])

    return of_rows, "Dimensions must be equal"


def takes_what_no_model_can_name():
    @dataclasses.dataclass
    class Pair:
        a: tf.Tensor
        b: tf.Tensor

    @tfr.recursive
    def shifted(pair, n):
        if n == 0:
            return pair.a
        return shifted(Pair(pair.b, pair.a), n - 1)

    assert float(shifted(Pair(tf.constant(1.0), tf.constant(2.0)), tf.constant(3))) == 2.0
    return shifted, "No encoder for object"


def has_a_default_that_no_model_can_name():
    @tfr.recursive
    def applied(n, g=lambda x: x + 1):
        if n == 0:
            return g(n)
        return applied(n - 1, g)

    assert int(applied(tf.constant(3))) == 1
    return applied, "No encoder for object"


@pytest.mark.parametrize(
    "make", [fails_where_it_is_saved, takes_what_no_model_can_name, has_a_default_that_no_model_can_name]
)
def test_function_that_cannot_be_saved_is_named_and_the_rest_is_saved(make, tmp_path):
    function, reason = make()
    module = module_with(broken=function, fib=fib)
    with pytest.warns(RuntimeWarning, match=f"lacks Module.broken: (?s:.*){reason}"):
        tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert not hasattr(loaded, "broken")
    assert int(loaded.fib(tf.constant(10))) == 55


def test_checkpoints_have_no_functions(tmp_path):
    module = module_with(fib=fib, listed=[fib], w=tf.Variable(2.0))
    path = tf.train.Checkpoint(module=module).save(str(tmp_path / "checkpoint"))
    keys = [key for key, _ in tf.train.list_variables(path)]
    assert [key for key in keys if "module" in key] == ["module/w/.ATTRIBUTES/VARIABLE_VALUE"]
    described = tf.train.load_checkpoint(path).get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
    assert b"listed" in described
    assert b"fib" not in described


@pytest.mark.thorough
def test_layers_with_recursive_methods(tmp_path):
    class Deep(tf.keras.layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(3, 3), initializer="ones")

        @tfr.recursive(input_signature=[tf.TensorSpec([None, 3]), COUNT])
        def deep(self, x, n):
            if n == 0:
                return x
            return tf.tanh(self.deep(x, n - 1) @ self.kernel)

        def call(self, x):
            return self.deep(x, 3)

    inputs = tf.keras.Input((3,))
    model = tf.keras.Model(inputs, Deep()(inputs))
    x = np.ones((2, 3), np.float32)
    loaded = saved(module_with(layer=model.layers[1]), tmp_path / "module")
    np.testing.assert_allclose(loaded.layer.deep(x, 3), model(x))
    model.export(str(tmp_path / "exported"), verbose=False)
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    np.testing.assert_allclose(exported.serve(x), model(x))


def test_calls_that_failed_do_not_matter(tmp_path):
    @tfr.recursive
    def chosen(x, mode="a"):
        if mode == "b":
            raise ValueError("no b")
        return x

    in_function = tf.function(lambda: chosen(tf.constant(1.0), "b"))
    for call in (lambda: chosen(tf.constant(1.0), "b"), in_function):
        with pytest.raises(ValueError, match="no b"):
            call()
    chosen(tf.constant(1.0))
    assert float(saved(module_with(chosen=chosen), tmp_path).chosen(tf.constant(3.0))) == 3.0


def test_variables_are_arguments(tmp_path):
    @tfr.recursive
    def scaled(w, n):
        if n == 0:
            return 1.0
        return w * scaled(w, n - 1)

    w = tf.Variable(2.0)
    assert float(scaled(w, tf.constant(3))) == float(scaled(tf.constant(2.0), tf.constant(3))) == 8.0
    loaded = saved(module_with(scaled=scaled, w=w), tmp_path)
    assert (
        float(loaded.scaled(loaded.w, tf.constant(2))) == float(loaded.scaled(tf.constant(2.0), tf.constant(2))) == 4.0
    )


def test_only_what_calls_outside_of_bodies_pass_is_traced(tmp_path):
    @tfr.recursive
    def length(xs, depth):
        if depth == 0:
            return tf.size(xs)
        return length(tf.concat([xs, xs], 0), depth - 1)  # a kind for each depth, a Python number

    @tfr.recursive
    def outer(xs):
        return length(xs, 2)

    assert int(outer(tf.constant([1]))) == 4
    module = module_with(outer=outer, length=length)
    assert len(saved(module, tmp_path / "inner").length.concrete_functions) == 0
    kept = tf.function(lambda: outer(tf.constant([1])) + length(tf.constant([1]), 2))
    assert int(kept()) == 8
    loaded = saved(module, tmp_path / "outer")
    assert len(loaded.length.concrete_functions) == 1
    assert int(loaded.length(tf.constant([1]), 2)) == 4


def test_saving_traces_no_more_than_for_a_tf_function(tmp_path):
    traces = []

    def same(x):
        traces.append(1)
        return x

    counts = []
    for name, decorated in [("stock", tf.function(same)), ("recursive", tfr.recursive(same))]:
        decorated(tf.constant(1.0))
        before = len(traces)
        saved(module_with(a=decorated, b=module_with(c=decorated), d=[decorated]), tmp_path / name)
        counts.append(len(traces) - before)
    assert counts[1] <= 2 * counts[0]  # a body is traced twice: its results' shapes are found first
