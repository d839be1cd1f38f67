"""What cannot be made static says so, and one can ask; what Grappler leaves is transformed all the same."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import os
import threading
import warnings

import processes
import pytest
import tensorflow as tf
from limits import HANG_SECONDS

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

SILENCE = "TENSORFLOW_RECURSION_SILENCE_DYNAMIC"


@contextlib.contextmanager
def warned():
    """The texts of our warnings inside, in a list that fills up."""
    texts = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts += [str(warning.message) for warning in caught if "run dynamically" in _singular(str(warning.message))]


def _singular(text):
    return text.replace("runs dynamically", "run dynamically")


def counter(name):
    """A recursive function that counts its argument down to 0."""
    count = tfr.Declare(name, [("n", tf.int32)], [("r", tf.int32)])
    return tfr.Defun(tf.int32, func_name=name, out_names=["r"])(
        lambda n: tf.cond(n < 1, lambda: n, lambda: count(n - 1))
    )


def in_dataset(*functions):
    """A tensor that is computed in a function of tf.data, by calls of `functions`."""
    dataset = tf1.data.Dataset.range(3).map(lambda i: sum(f(tf.cast(i, tf.int32)) for f in functions))
    return tf1.data.make_one_shot_iterator(dataset.repeat()).get_next()


def beside_its_own_body(*functions):
    """Calls of functions in a graph that holds their bodies already, because it was transformed and imported."""
    calls = [function(5) for function in functions]
    static = tfr.transform_graph(tf1.get_default_graph(), calls)
    imported = tf1.import_graph_def(static, return_elements=[call.name for call in calls], name="")
    return sum(imported) + sum(function(3) for function in functions)


# --- What falls back ----------------------------------------------------------------------------------------------


def test_fallback_warns_once_for_each_function():
    y = beside_its_own_body(counter("First"), counter("Second"))
    other = beside_its_own_body(counter("Third"))
    with warned() as texts, tf1.Session(config=tfr.session_config()) as session:
        for fetch in (y, y, other, [y, other]):
            session.run(fetch)
    assert [text.split("'")[1] for text in texts] == ["First", "Second", "Third"]
    assert all("body" in text and "Change what" in text for text in texts)


def test_fallback_warns_in_each_session():
    y = beside_its_own_body(counter("Count"))
    with warned() as texts:
        for _ in range(2):
            with tf1.Session(config=tfr.session_config(on_fallback="warn")) as session:
                session.run(y)
    assert len(texts) == 2


def test_fallback_says_what_the_transformation_failed_of(fib):
    y = beside_its_own_body(fib)
    with warned() as texts, tf1.Session(config=tfr.session_config()) as session:
        session.run(tf.constant(1))
        with contextlib.suppress(tf.errors.OpError):
            session.run(y)
    (text,) = texts
    assert "'Fib'" in text and "the graph holds calls of it and its body" in text and "Change what" in text


def test_fallback_warning_points_at_the_users_line():
    y = beside_its_own_body(counter("Count"))
    with warnings.catch_warnings(record=True) as caught, tf1.Session(config=tfr.session_config()) as session:
        warnings.simplefilter("always")
        session.run(y)
    assert {warning.filename for warning in caught if "Count" in str(warning.message)} == {__file__}


def test_fallback_is_an_error_of_the_run_where_that_is_asked_for():
    y = beside_its_own_body(counter("Count"))
    static = counter("Other")(5)
    with warned() as texts, tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
        assert session.run(static) == 0
        for _ in range(2):
            with pytest.raises(tf.errors.FailedPreconditionError, match=r"'Count' runs dynamically.*its body"):
                session.run(y)
        assert session.run(static) == 0
    assert texts == []


def test_fallback_is_an_error_where_warnings_are():
    y = beside_its_own_body(counter("Count"))
    with warnings.catch_warnings(), tf1.Session(config=tfr.session_config()) as session:
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="Count"):
            session.run(y)
            sum(range(10))  # Python shows what is pending between two steps of its own


def test_fallback_warns_of_runs_in_other_threads():
    y = beside_its_own_body(counter("Count"))
    with warned() as texts, tf1.Session(config=tfr.session_config()) as session:
        thread = threading.Thread(target=session.run, args=(y,))
        thread.start()
        thread.join(HANG_SECONDS)
        assert not thread.is_alive()
    assert len(texts) == 1


@pytest.mark.parametrize("value", ["warm", "", 1, True])
def test_on_fallback_is_refused_when_it_is_no_known_word(value):
    with pytest.raises(ValueError, match=r'on_fallback is .*, expected "warn" or "error"'):
        tfr.session_config(on_fallback=value)


def test_on_fallback_is_refused_in_a_configuration_made_by_hand(fib):
    config = tfr.session_config()
    config.graph_options.rewrite_options.custom_optimizers[0].parameter_map["on_fallback"].s = b"never"
    with (
        tf1.Session(config=config) as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="'on_fallback' is \"never\", expected"),
    ):
        session.run(fib(3))


# --- Functions that kernels run -----------------------------------------------------------------------------------


def counted(session, fetch, feed=None):
    """What a fetch is, and how many calls ran statically and dynamically by their own kernels for it."""
    before = tfr.config.outermost_calls()
    value = session.run(fetch, feed)
    after = tfr.config.outermost_calls()
    return value, after["static"] - before["static"], after["dynamic"] - before["dynamic"]


def test_calls_in_dataset_functions_are_static(fib):
    nested = in_dataset(fib, counter("Count"))
    before = tfr.config.outermost_calls()
    with warned() as texts, tf1.Session(config=tfr.session_config()) as session:
        values = [session.run(nested) for _ in range(3)]
    after = tfr.config.outermost_calls()
    assert values == [0, 1, 1]
    # The iterator reads ahead, also between runs.
    assert after["static"] - before["static"] >= 6 and after["dynamic"] == before["dynamic"]
    with tf1.Session() as session:
        assert counted(session, nested)[1:] == (0, 0)
    assert texts == []


def test_calls_in_functions_obey_the_options_of_the_session(fib):
    nested = in_dataset(lambda n: counter("Count")(n + 100))
    config = tfr.session_config(max_depth=50)
    config.graph_options.rewrite_options.min_graph_nodes = 0
    with tf1.Session(config=config) as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match=r"limit is 50; .* session_config\(max_depth"):
            session.run(nested)
    with tf1.Session(config=tfr.session_config(max_depth=200)) as session:
        value, static, dynamic = counted(session, nested)
    assert (value, dynamic) == (0, 0) and static >= 1


def test_calls_in_branches_that_a_kernel_runs_are_static(fib):
    x = tf1.placeholder(tf.float32, [])  # an If takes any number, a Switch does not
    tf1.enable_control_flow_v2()
    then = tf.function(lambda: fib(10)).get_concrete_function()
    other = tf.function(lambda: fib(11)).get_concrete_function()
    y = tf.raw_ops.If(cond=x, input=[], Tout=[tf.int32], then_branch=then, else_branch=other)[0]
    with warned() as texts, tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
        assert counted(session, y, {x: 1.0}) == (55, 1, 0)
        assert counted(session, y, {x: 0.0}) == (89, 1, 0)
    assert texts == []


# --- What Grappler leaves -----------------------------------------------------------------------------------------


def rewrites(**options):
    config = tfr.session_config(on_fallback="error")
    for name, value in options.items():
        setattr(config.graph_options.rewrite_options, name, value)
    return config


@pytest.mark.parametrize(
    "config",
    [rewrites(), rewrites(meta_optimizer_timeout_ms=1), rewrites(min_graph_nodes=1_000_000)],
    ids=["plain", "grappler_has_no_time", "graph_is_too_small"],
)
def test_calls_are_static_whatever_grappler_does(config, fib, control_flow):
    v = tf1.get_variable("v", initializer=3, use_resource=True)
    x = tf1.placeholder(tf.int32, [])
    captured = tfr.Defun(tf.int32, func_name="Captured", out_names=["r"])(lambda n: fib(n) + v)
    y = tf.cond(x > 3, lambda: captured(x), lambda: fib(x + 1) * 2)
    z = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + tf.ensure_shape(fib(i + x), [])), (0, 0))[1]
    with tf1.Session(config=config) as session:
        session.run(v.initializer)
        assert session.run([y, z], {x: 3}) == [6, 10]
        assert session.run([y, z], {x: 10}) == [58, 288]
        assert tfr.is_static(session, [y, z])


def test_calls_are_static_when_the_result_of_one_is_fed(fib):
    x = fib(5)
    y = fib(x + 1)
    with tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
        assert session.run(y) == 8
        assert session.run([y, y.op, x], {x: 3}) == [3, None, 3]
        assert tfr.is_static(session, y, feeds=[x])
        assert tfr.is_static(session, [x, y], feeds=[x])
        assert tfr.is_static(session, x, feeds=[x])


def test_calls_are_static_when_a_stock_optimizer_fails(fib):
    # It finds no variables, which is an error that takes all of Grappler down, as those of tfg_optimizer do.
    config = rewrites(fail_on_optimizer_errors=True)
    config.graph_options.rewrite_options.auto_parallel.enable = True
    config.graph_options.rewrite_options.auto_parallel.num_replicas = 2
    x = tf1.placeholder(tf.int32, [])
    with tf1.Session(config=config) as session:
        y = fib(x)
        assert session.run(y, {x: 10}) == 55
        assert tfr.is_static(session, y)


# --- Whether it is static -----------------------------------------------------------------------------------------


def test_a_call_whose_result_is_fed_does_not_count_as_dynamic(fib):
    x = fib(5)
    y = x + 1
    with tf1.Session() as session:
        assert session.run([x, y], {x: 3}) == [3, 4]
        assert tfr.is_static(session, [x, y], feeds=[x])
        assert not tfr.is_static(session, [x, y])


def test_is_static_tells_the_mode_of_what_is_fetched(fib):
    y = fib(5)
    plain = tf.constant(1) + 1
    nested = in_dataset(fib)
    with tf1.Session(config=tfr.session_config()) as session:
        assert tfr.is_static(session, y)
        assert tfr.is_static(session, {"a": [y, plain.op], "b": "Fib:0"})
        assert tfr.is_static(session, [y, nested])
        assert session.run(y) == 5
    with tf1.Session() as session:
        assert tfr.is_static(session, plain)
        assert not tfr.is_static(session, [plain, y])
        assert not tfr.is_static(session, nested)
        assert not tfr.is_static(session, y + plain)
    with tf1.train.MonitoredSession(tf1.train.ChiefSessionCreator(config=tfr.session_config())) as session:
        assert tfr.is_static(session, y)


def test_is_static_is_true_where_grappler_is_off_only_without_calls(fib):
    y = fib(5)
    with tf1.Session(config=without_optimizers()) as session:
        assert not tfr.is_static(session, y)
        assert tfr.is_static(session, tf.constant(1))


def test_is_static_runs_nothing_and_warns_of_nothing():
    v = tf1.get_variable("v", initializer=0, use_resource=True)
    count = counter("Count")
    add = tfr.Defun(tf.int32, func_name="Add", out_names=["r"])(lambda n: v.assign_add(n).read_value())
    y = add(count(3) + 1)
    dynamic = beside_its_own_body(count)
    with warned() as texts, tf1.Session(config=tfr.session_config()) as session:
        session.run(v.initializer)
        assert tfr.is_static(session, y) and not tfr.is_static(session, dynamic)
        assert session.run(v) == 0
    assert texts == []


def test_is_static_asks_the_server_of_a_session(fib):
    server = tf1.train.Server.create_local_server()
    y = fib(5)
    with tf1.Session(server.target, config=tfr.session_config()) as session:
        assert tfr.is_static(session, y)
        assert not tfr.is_static(session, beside_its_own_body(fib))
    with tf1.Session(server.target) as session:
        assert not tfr.is_static(session, y)


def test_is_static_asks_of_a_session_that_has_a_name(fib):
    config = tfr.session_config()
    config.experimental.session_metadata.name = "the only one of this name"
    y = fib(3)
    with tf1.Session(config=config) as session:
        assert session.run(y) == 2
        assert tfr.is_static(session, y)
        assert session.run(y) == 2


def test_is_static_names_a_fetch_that_is_not_there(fib):
    fib(1)
    with tf1.Session(config=tfr.session_config()) as session, pytest.raises(KeyError, match="nowhere"):
        tfr.is_static(session, "nowhere:0")


# --- No switch ----------------------------------------------------------------------------------------------------


def test_session_without_switch_says_once_that_there_is_one(monkeypatch, fib):
    monkeypatch.delenv(SILENCE)
    y, z = fib(5), fib(6)
    with warned() as texts, tf1.Session() as session:
        for fetch in (tf.constant(1), y, y, z):
            session.run(fetch)
    (text,) = texts
    assert "'Fib'" in text and "tfr.session_config()" in text and f"{SILENCE}=1" in text


def without_optimizers(**options):
    config = tfr.session_config(**options)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def test_session_without_optimizers_warns(fib):
    """The variable that all tests set silences sessions without the switch alone: here somebody wants static calls."""
    y = fib(5)
    with warned() as texts, tf1.Session(config=without_optimizers()) as session:
        assert session.run(y) == 5
    (text,) = texts
    assert "'Fib'" in text and "disable_meta_optimizer" in text


def test_session_without_optimizers_fails_where_a_fallback_is_an_error(fib):
    y = fib(5)
    with warned() as texts, tf1.Session(config=without_optimizers(on_fallback="error")) as session:
        assert session.run(tf.constant(1)) == 1
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"'Fib'.*disable_meta_optimizer"):
            session.run(y)
    assert texts == []


def test_session_without_switch_is_silent_when_told_so_or_without_calls(monkeypatch, fib):
    y = fib(5)
    with warned() as texts:
        with tf1.Session() as session:
            session.run(y)  # the variable is set for all tests
        monkeypatch.delenv(SILENCE)
        with tf1.Session() as session:
            session.run(tf.constant(1))
        with tf1.Session(config=tfr.session_config()) as session:
            session.run(y)
    assert texts == []


@pytest.mark.thorough
def test_script_prints_the_warning(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import tensorflow as tf, tensorflow_recursion as tfr\n"
        "tf.compat.v1.disable_eager_execution()\n"
        "f = tfr.Defun(tf.int32, func_name='Inc', out_names=['r'])(lambda n: n + 1)\n"
        "print(tf.compat.v1.Session().run(f(1)))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != SILENCE}
    done = processes.run_python(script, environment=environment)
    assert done.stdout == "2\n"
    assert "script.py:4: RuntimeWarning: Calls of 'Inc' run dynamically" in done.stderr
