"""Which tests run, and where; what each of them has is in shared_fixtures.py."""
# SPDX-License-Identifier: Apache-2.0

import gc
import os
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TENSORFLOW_RECURSION_SILENCE_DYNAMIC", "1")  # half of the tests mean dynamic execution

import matrix
import pytest

# Building a graph makes so many objects that with Python's own thresholds the collector takes twice the time.
gc.set_threshold(50_000, 20, 20)


def pytest_addoption(parser):
    matrix.add_options(parser)
    parser.addoption(
        "--fake-gpu", action="store_true", help="the second of two devices is a GPU, as tests/cc/fake_gpu has it"
    )


def pytest_configure(config):
    if _only_deals_out(config):
        return  # without TensorFlow, whose import takes seconds
    config.pluginmanager.import_plugin("shared_fixtures")
    if config.getoption("--fake-gpu"):
        import distribution_helpers

        distribution_helpers.load_fake_gpu()


def _only_deals_out(config):
    """Whether this process starts others, which run the tests."""
    is_worker = hasattr(config, "workerinput")
    return not is_worker and config.getoption("dist", "no") != "no" and not config.option.collectonly


def pytest_ignore_collect(collection_path, config):
    """Ignores, with the fake GPU, modules in which no test is for it."""
    is_module = collection_path.suffix == ".py"
    if config.getoption("--fake-gpu") and is_module and "mark.fake_gpu" not in collection_path.read_text():
        return True
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Makes one process run, with `--dist=loadscope`, all tests that share what takes seconds to start.

    Not by xdist's own groups (`--dist=loadgroup`), which pytest 9.2 does not see.
    """
    from xdist.dsession import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if "test_processes.py" in nodeid or re.search(r"[\[-]processes[]-]", nodeid):
                return "cluster"
            return "benchmarks" if "test_benchmarks.py" in nodeid else nodeid

    return Scheduling(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.hookimpl(trylast=True)  # what `-k` and `-m` leave out cannot be chosen
def pytest_collection_modifyitems(config, items):
    fake_gpu = config.getoption("--fake-gpu")
    # The fake GPU takes part in the combinations that the processors do not.
    kept = matrix.select(items, config.getoption("--matrix"), config.getoption("--rotation") + fake_gpu)
    kept = [item for item in kept if not fake_gpu or _may_use_fake_gpu(item)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def pytest_collection_finish():
    """Hides from the collector what stays anyway: TensorFlow's modules and the tests, half a million objects."""
    gc.collect()
    gc.freeze()


def _places(item):
    return [value for name, value in matrix.parameters(item).items() if name in ("mode", "place")]


def _may_use_fake_gpu(item):
    """What is about two devices, not about CPUs and processes."""
    places = _places(item)
    return item.get_closest_marker("fake_gpu") and (not places or "devices" in places)
