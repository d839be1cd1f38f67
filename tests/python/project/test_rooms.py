"""The rooms of the C++ and of its tests: who may include whom, and that no files include one another in a circle."""
# SPDX-License-Identifier: Apache-2.0

import graphlib
import pathlib
import re

import pytest

pytestmark = pytest.mark.every_case

ROOT = pathlib.Path(__file__).resolve().parents[3]
_INCLUDE = re.compile(r'^#include "((?:cc|tests/cc)/[^"]+)"', re.MULTILINE)


def rooms():
    """cc/rooms.bzl, which Bazel loads too: each room with those directly below it."""
    names = {"load": lambda *_: None}
    exec((ROOT / "cc" / "rooms.bzl").read_text(), names)
    return names["ROOMS"]


ROOMS = rooms()


def reachable(room):
    """The rooms whose headers a file of `room` may include."""
    found = {room}
    for lower in ROOMS[room]:
        found |= reachable(lower)
    return found


def includes(directory):
    """Yields (path, included path) of our own headers, paths relative to the repository."""
    for path in sorted(p for pattern in ("*.h", "*.cc") for p in (ROOT / directory).rglob(pattern)):
        for included in _INCLUDE.findall(path.read_text()):
            yield str(path.relative_to(ROOT)), included


def circle(graph):
    """The nodes of a circle in `graph` (each node with those it depends on), or None."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return None


def test_every_directory_of_cc_is_a_room_in_the_order():
    found = {path.parent.name for pattern in ("*.h", "*.cc") for path in (ROOT / "cc").rglob(pattern)}
    assert found <= set(ROOMS), "add the room to ROOMS in cc/rooms.bzl, and a BUILD file to it"
    assert circle(ROOMS) is None


def test_every_directory_of_tests_is_a_room_or_the_device_that_tests_bring():
    found = {path.parent.name for pattern in ("*.h", "*.cc") for path in (ROOT / "tests" / "cc").rglob(pattern)}
    assert found <= set(ROOMS) | {"fake_gpu"}


def test_contributing_tells_the_order_of_the_rooms():
    """`a <- b <- c;  {b, d} <- e`: what is left of an arrow is directly below what is right of it."""
    block = re.search(r"(?:^    .*<-.*\n)+", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)[0]
    told = {"base": set()}
    for chain in re.split(r"[;\n]", block):
        steps = [set(re.findall(r"\w+", step)) for step in chain.split("<-")]
        for lower, rooms in zip(steps, steps[1:], strict=False):
            for room in rooms:
                told[room] = told.get(room, set()) | lower
    assert told == {room: set(lower) for room, lower in ROOMS.items()}


# What tests of a room use, helpers included, is in tests/cc/<room> or those below, as what the room itself uses is.
@pytest.mark.parametrize("directory", ["cc", "tests/cc"])
@pytest.mark.parametrize("room", ROOMS)
def test_room_includes_only_rooms_below_it(room, directory):
    allowed = reachable(room)
    pairs = includes(f"{directory}/{room}")
    wrong = [f"{path} includes {header}" for path, header in pairs if header.split("/")[-2] not in allowed]
    assert not wrong, f"{room} may include {sorted(allowed)} (cc/rooms.bzl)"


def test_headers_do_not_include_one_another_in_a_circle():
    graph = {}
    for path, header in [*includes("cc"), *includes("tests/cc")]:
        graph.setdefault(path, set()).add(header)
    assert circle(graph) is None


def test_includes_name_files_that_exist():
    assert not [pair for pair in [*includes("cc"), *includes("tests/cc")] if not (ROOT / pair[1]).is_file()]


def test_package_does_not_include_tests():
    assert not [pair for pair in includes("cc") if pair[1].startswith("tests/")]
