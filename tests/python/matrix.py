"""Which combinations of mode, place and control flow a run of the tests takes: all, some in turn, or one.

Many tests are written once and run in every combination of a few *axes*, which are fixtures with parameters:

    mode, session_config   how a session runs calls: dynamically, or statically with some number of workers
    mode, place            where: on one device, two devices of a process, or two processes
    control_flow           "v1": graphs have Switch and Merge from the start; "v2": If and While, lowered to these later
    variable_kind          references or resources
    derivation             how derivatives are taken: by tapes in eager mode or in a tf.function, by tf.gradients

What else a test is parametrized by (a program, a value) is no axis. `--matrix=` says which combinations run:

    full        all of them: the default, and `make test-all`
    pairs       each test, with each of its other parameters, in every mode and place, with every control flow and every
                kind of variable, but not in each combination of these: `make test`
    one         each test function once, but none marked as `thorough`, all cases of those marked as `every_case`, and
                those marked as `every_program` once with each of their programs, in one combination, and in the next
                one for the next program: `make check`

With "pairs", a test of 5 modes and 2 control flows runs 5 times instead of 10. The control flow that meets a mode is
another one for the next program, so that the programs together meet all combinations. A test marked as `thorough`,
which takes seconds, runs once with each of its other parameters: in one combination, and in the next one for the next
program. All parameters of a test marked as `each_value` are axes for "pairs": with 6 programs, 3 dtypes and 3 sizes it
runs 6 times instead of 54. Of what this chooses, a test marked as `sampled(n)` runs each nth only. A test marked as
`full_matrix` runs with "full" alone. docs/testing.md says why faults hardly escape this choice. It is the same in every
run; `--rotation=1` makes the next one.
"""
# SPDX-License-Identifier: Apache-2.0

import collections
import itertools
import zlib

AXES = ("mode", "place", "session_config", "control_flow", "variable_kind", "derivation")


def add_options(parser):
    parser.addoption(
        "--matrix",
        choices=["full", "pairs", "one"],
        default="full",
        help="which combinations of mode, place and control flow run (tests/python/matrix.py)",
    )
    parser.addoption("--rotation", type=int, default=0, help="which of the combinations `--matrix` chooses")


def select(items, matrix, rotation):
    """Returns the tests that run, in their order."""
    if matrix == "full":
        return items
    left_out = {"full_matrix", "thorough"} if matrix == "one" else {"full_matrix"}
    items = [item for item in items if not any(mark.name in left_out for mark in item.iter_markers())]
    chosen = set()
    for function, tests in _by(_function, items).items():
        turn = zlib.crc32(function.encode()) + rotation
        marked = tests[0].get_closest_marker
        if matrix == "one" and not marked("every_program"):
            chosen.update(tests if marked("every_case") else [tests[turn % len(tests)]])
            continue
        if matrix == "pairs" and marked("each_value"):
            selected = _cover(tests, turn, list(parameters(tests[0])))
        else:
            selected = []
            for number, combinations in enumerate(_by(_program, tests).values(), start=turn):
                if matrix == "one" or marked("thorough"):
                    selected.append(combinations[number % len(combinations)])
                else:
                    axes = [name for name in AXES if name in parameters(combinations[0])]
                    selected += _cover(combinations, number, axes)
        step = marked("sampled").args[0] if matrix == "pairs" and marked("sampled") else 1
        chosen.update(selected[turn % min(step, len(selected)) :: step])
    return [item for item in items if item in chosen]


def parameters(item):
    """The parameters of a test by name."""
    return item.callspec.params if hasattr(item, "callspec") else {}


def _by(key, items):
    groups = collections.defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def _function(item):
    return item.nodeid.partition("[")[0]


def _program(item):
    """What a test has beside axes. (Two tests of one function have the same object where they have the same value.)"""
    return frozenset((name, id(value)) for name, value in parameters(item).items() if name not in AXES)


def _cover(tests, turn, names):
    """A few of the tests that have every value of each of these parameters together, other ones in each turn.

    The next one is always a test with the most values that are still missing, then with the most pairs of values that
    have not met, then with values that few chosen ones have.
    """
    start = turn % len(tests)
    values = {test: [(name, id(parameters(test)[name])) for name in names] for test in tests[start:] + tests[:start]}
    missing = set(itertools.chain(*values.values()))
    met, uses = set(), collections.Counter()

    def gain(test):
        new_pairs = set(itertools.combinations(values[test], 2)) - met
        return len(missing.intersection(values[test])), len(new_pairs), -sum(uses[value] for value in values[test])

    chosen = []
    while missing or not chosen:
        best = max(values, key=gain)
        chosen.append(best)
        missing.difference_update(values[best])
        met.update(itertools.combinations(values[best], 2))
        uses.update(values[best])
    return chosen
