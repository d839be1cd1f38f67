"""The examples for TensorFlow 2 run, and print what they are to."""
# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import re

import processes
import pytest
from tensorboard.backend.event_processing import event_accumulator

ROOT = pathlib.Path(__file__).resolve().parents[3]


def run(example, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = processes.run_python(ROOT / "examples" / example, *arguments, environment=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_fib():
    assert run("fib_tf2.py").splitlines() == ["6765", "[ 1  0  1  1  2  3  5  8 13 21]"]


@pytest.mark.thorough
def test_treelstm_in_keras_learns_and_is_saved(tmp_path):
    printed = run("keras_treelstm.py", "--quick", "--units", "16", "--threads", "1", "--out", tmp_path)
    first, second = map(float, re.findall(r" loss: ([\d.]+)", printed))
    assert second < 0.75 * first, printed
    # These are 200 sentences, some of them neutral. By guessing, a half is right.
    assert float(re.findall(r" sentences_two: ([\d.]+)", printed)[-1]) > 0.65, printed
    # These are 40 sentences. By guessing, a fifth is right.
    five = re.search(r"test: five classes ([\d.]+)%, two classes [\d.]+%", printed)
    assert five is not None and float(five[1]) > 25, printed
    assert (tmp_path / "model.keras").exists()
    assert {"epoch_loss", "epoch_sentences_five"} <= set(tags_of(tmp_path / "logs" / "train"))
    assert {"evaluation_loss_vs_iterations"} <= set(tags_of(tmp_path / "logs" / "validation"))


def tags_of(directory):
    """What TensorBoard shows of a run."""
    events = event_accumulator.EventAccumulator(str(directory)).Reload()
    return events.Tags()["tensors"]
