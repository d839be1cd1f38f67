"""`ResultShapes`: what is known of the shapes that functions return, from one trace to the next."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import types

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion._tf import inferring
from tensorflow_recursion.traces.definitions import Registry
from tensorflow_recursion.traces.result_shapes import ResultShapes
from tensorflow_recursion.traces.signatures import Signature

pytestmark = pytest.mark.every_case

UNKNOWN = None  # a shape of which not even the rank is known


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture
def result_shapes(graph, registry):
    return ResultShapes(graph, registry)


def define(registry, *, body=lambda x: x, name="F", wants_shapes=False, output_shapes=None):
    """A function of the registry; one with a `tf.TensorSpec` among its arguments wants shapes."""
    takes = tf.TensorSpec([3], tf.float32) if wants_shapes else tf.float32
    definition = tfr.Defun(takes, func_name=name, output_shapes=output_shapes)(body)
    assert definition.wants_shapes == wants_shapes
    registry.definitions[name] = definition
    return definition


def shapes(*dims):
    return tuple(tf.TensorShape(of_one) for of_one in dims)


def learn(result_shapes, definition, *found, guess=None, declared=None):
    """Lets a trace return tensors of the shapes `found`; its guess is the same if it says nothing else."""
    outputs = [tf.compat.v1.placeholder(tf.float32, dims) for dims in found]
    result_shapes.learn(definition, declared, outputs, shapes(*found) if guess is None else shapes(*guess))


def known(result_shapes, name="F"):
    """What is known, as lists; tensor shapes compare as equal if they are only compatible."""
    found = result_shapes.get(name)
    return found and [UNKNOWN if shape.rank is None else shape.as_list() for shape in found]


def test_nothing_is_known_before_a_trace(result_shapes, registry):
    define(registry)
    assert result_shapes.get("F") is None
    assert not result_shapes.is_stale("F", None)


def test_first_trace_tells_the_shapes_of_all_results(result_shapes, registry):
    learn(result_shapes, define(registry), [3], [], [None, 2], UNKNOWN)
    assert known(result_shapes) == [[3], [], [None, 2], UNKNOWN]


@pytest.mark.parametrize(
    "first, second, both",
    [
        ([3], [3], [3]),
        ([3], [6], [None]),
        ([2, 3], [2, 4], [2, None]),
        ([3], [3, 1], UNKNOWN),
        ([3], [None], [None]),
        ([None], [3], [None]),
        (UNKNOWN, [3], UNKNOWN),
    ],
)
def test_what_differs_between_traces_becomes_open(result_shapes, registry, first, second, both):
    definition = define(registry)
    learn(result_shapes, definition, first, [7])
    learn(result_shapes, definition, second, [7])
    assert known(result_shapes) == [both, [7]]


def test_what_has_become_open_stays_open(result_shapes, registry):
    definition = define(registry)
    for dims in ([3], [6], [3], [3]):
        learn(result_shapes, definition, dims)
    assert known(result_shapes) == [[None]]


@pytest.mark.parametrize("stated", [[[4]], [None]], ids=["known", "unknown"])
def test_nothing_is_learned_where_definition_states_shapes(result_shapes, registry, stated):
    learn(result_shapes, define(registry, output_shapes=stated), [3])
    assert result_shapes.get("F") is None


def test_nothing_is_learned_where_declaration_states_shapes(result_shapes, registry):
    named = (("x", tf.float32),)
    definition = define(registry)
    learn(result_shapes, definition, [3], declared=Signature("F", named, named, shapes([4])))
    assert result_shapes.get("F") is None
    learn(result_shapes, definition, [3], declared=Signature("F", named, named))
    assert known(result_shapes) == [[3]]


def test_nothing_is_learned_of_derivatives(result_shapes):
    derivative = types.SimpleNamespace(user_name="F__backward1", output_shapes=None, base=object())
    learn(result_shapes, derivative, [3])
    assert result_shapes.get("F__backward1") is None


def test_wanted_shapes_begin_with_the_guess_and_are_taken_back(result_shapes, registry):
    definition = define(registry, wants_shapes=True)
    learn(result_shapes, definition, UNKNOWN, [2], guess=[[3], [2]])
    assert known(result_shapes) == [[3], [2]]
    learn(result_shapes, definition, [6], [2], guess=[[3], [2]])
    assert known(result_shapes) == [[None], [2]]


def test_wanting_all_begins_with_the_guesses_for_what_was_traced(result_shapes, registry):
    learn(result_shapes, define(registry), UNKNOWN)
    assert result_shapes.want_all({"F": shapes([3]), "G": shapes([3])})
    assert known(result_shapes) == [[3]]
    assert result_shapes.get("G") is None
    learn(result_shapes, define(registry, name="H"), UNKNOWN, guess=[[5]])
    assert known(result_shapes, "H") == [[5]]


def test_wanting_all_once_more_brings_back_no_guess(result_shapes, registry):
    definition = define(registry)
    learn(result_shapes, definition, UNKNOWN)
    result_shapes.want_all({"F": shapes([3])})
    learn(result_shapes, definition, [6])
    assert not result_shapes.want_all({"F": shapes([3])})
    assert known(result_shapes) == [[None]]


@pytest.mark.parametrize(
    "taken, found, is_stale, is_stale_if_wanted",
    [
        ([3], [3], False, False),
        ([3], [None], True, True),
        ([3], [6], True, True),
        ([None], [3], False, True),
        (UNKNOWN, [3], False, True),
        (UNKNOWN, UNKNOWN, False, False),
    ],
)
@pytest.mark.parametrize("is_wanted", [False, True], ids=["unwanted", "wanted"])
def test_caller_is_stale_if_it_took_wrong_shapes(
    result_shapes, registry, taken, found, is_stale, is_stale_if_wanted, is_wanted
):
    learn(result_shapes, define(registry, wants_shapes=is_wanted), found)
    assert result_shapes.is_stale("F", shapes(taken)) == (is_stale_if_wanted if is_wanted else is_stale)


@pytest.mark.parametrize("is_wanted", [False, True], ids=["unwanted", "wanted"])
def test_caller_that_knew_nothing_is_stale_where_shapes_are_wanted(result_shapes, registry, is_wanted):
    learn(result_shapes, define(registry, wants_shapes=is_wanted), [3])
    assert result_shapes.is_stale("F", None) == is_wanted


def infer(result_shapes, definition):
    return result_shapes.infer(definition, None, contextlib.nullcontext())


def calls_itself(result_shapes, base):
    """A body whose second path calls the function; the library makes the same check at each call."""

    def call():
        result_shapes.look.check_not_left_out("F")
        raise AssertionError("a call was built whose results are being looked for")

    return lambda x: tf.cond(tf.size(x) < 1, base, call) if base else call()


def test_inference_goes_by_the_paths_without_a_call(result_shapes, registry):
    body = calls_itself(result_shapes, lambda: tf.zeros([3, 2]))
    assert infer(result_shapes, define(registry, body=body))
    assert known(result_shapes) == [[3, 2]]
    result_shapes.look.check_not_left_out("F")  # it is known now


def test_inference_fails_where_each_path_calls(result_shapes, registry):
    assert not infer(result_shapes, define(registry, body=calls_itself(result_shapes, None)))
    assert result_shapes.get("F") is None
    result_shapes.look.check_not_left_out("F")  # nobody looks for it any more


def test_inference_keeps_what_a_trace_has_told(result_shapes, registry):
    definition = define(registry, body=lambda x: tf.zeros([3]))
    learn(result_shapes, definition, [6])
    assert not infer(result_shapes, definition)
    assert known(result_shapes) == [[6]]


def test_inference_leaves_stated_shapes_alone(result_shapes, registry):
    assert not infer(result_shapes, define(registry, body=lambda x: tf.zeros([3]), output_shapes=[[3]]))


def test_inference_of_one_function_does_not_begin_another(result_shapes, registry):
    other = define(registry, body=lambda x: tf.zeros([3]), name="G")
    begun = []

    def body(x):
        begun.append(infer(result_shapes, other))
        return tf.zeros([2])

    assert infer(result_shapes, define(registry, body=body))
    assert begun == [False]
    assert known(result_shapes) == [[2]]


def test_call_is_left_out_only_while_its_function_is_inferred(result_shapes, registry):
    left_out = []

    def body(x):
        for name in ("F", "G"):
            with contextlib.suppress(inferring.Unknown):
                result_shapes.look.check_not_left_out(name)
                continue
            left_out.append(name)
        return tf.zeros([2])

    infer(result_shapes, define(registry, body=body))
    assert left_out == ["F"]
