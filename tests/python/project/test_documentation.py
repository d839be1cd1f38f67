"""Pages of the documentation: pictures are of the programs shown, links lead somewhere, no page is too long."""
# SPDX-License-Identifier: Apache-2.0

import html
import importlib
import json
import pathlib
import re

import processes
import pytest

from tensorflow_recursion import _build_info

pytestmark = pytest.mark.every_case

ROOT = pathlib.Path(__file__).parents[3]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
TOURS = ["docs/tour.md", "docs/tour_gradient.md"]
MOST_WORDS = 1500
# What is looked up or measured is not read in one go: words, what does not work, how tests are run, tables of figures.
LOOKED_UP = {"docs/glossary.md", "docs/limits.md", "docs/testing.md", "docs/figures.md"}
DRAWN_WITH = "2.21."  # the TensorFlow of requirements-dev.txt
# What a build makes.
GENERATED = {"benchmarks/results/"}


def _text(page):
    """A page without its code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)


def _anchors(page):
    """The anchors of a page's titles, as both GitHub and the site make them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", TOURS)
def test_pictures_of_a_tour_are_of_the_program_on_its_page(name):
    program = (ROOT / "tools" / "tour" / "programs.py").read_text()
    page = (ROOT / name).read_text()
    (body,) = re.findall(r"^    return tf\.cond.*$", page, flags=re.MULTILINE)
    assert body.strip() in program


@pytest.mark.thorough
def test_pictures_of_the_tours_are_of_what_runs_now(tmp_path, monkeypatch):
    """If it fails, the pictures have to be drawn again (`make docs`), and the tours read again."""
    if not _build_info.TENSORFLOW_VERSION.startswith(DRAWN_WITH):
        pytest.skip("another TensorFlow gives nodes other names")
    done = processes.run_python("tools/tour/dump.py", str(tmp_path / "tour.json"), directory=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "tour"))
    draw = importlib.import_module("draw")
    for name, picture in draw.pictures(json.loads((tmp_path / "tour.json").read_text())).items():
        drawn = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text()
        if isinstance(picture, str):
            assert picture == drawn, name
        else:
            assert _texts_of(picture) == sorted(map(html.unescape, re.findall(r">([^<>]+)</text>", drawn))), name


def test_tour_names_every_pass_in_the_order_in_which_they_run():
    registration = (ROOT / "cc" / "passes" / "registration.cc").read_text()
    passes = re.findall(r"^REGISTER_OPTIMIZATION\([^)]*?(\w+)Pass\);", registration, flags=re.MULTILINE)
    _, _, section = (ROOT / "docs" / "tour.md").read_text().partition("## The passes beside these")
    named = re.findall(r"^\| [^|]*\| ([A-Z][\w, ]*?) \|", section, flags=re.MULTILINE)
    assert [name for names in named for name in names.split(", ")] == passes
    count = {11: "eleven", 12: "twelve", 13: "thirteen", 14: "fourteen"}[len(passes) + 1]  # and the transformation
    assert f"one of {count} passes" in section


def test_charts_show_the_ratios_of_the_page_of_figures(monkeypatch):
    """If it fails, the charts have to be drawn again (`make docs`), or their numbers are not those of the table."""
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "tour"))
    figures = ROOT / "docs" / "figures.json"
    for name, drawn in importlib.import_module("charts").charts(figures).items():
        assert (ROOT / "docs" / "pictures" / f"{name}.svg").read_text() == drawn, name
    _, _, table = (ROOT / "docs" / "figures.md").read_text().partition("## Programs and nets in sessions")
    measured = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", table)}
    bars = [bar for chart in json.loads(figures.read_text())["charts"].values() for bar in chart["bars"]]
    assert {label: ratio for label, ratio in bars if ratio not in measured} == {}


def _texts_of(picture):
    """What stands in a picture of a graph, whose layout is not compared."""
    in_nodes = [text for node in picture.nodes.values() for text in (node.title, node.small)]
    on_edges = [edge.label for edge in picture.edges]
    return sorted(text for text in [*in_nodes, *on_edges, *picture.groups.values()] if text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", _text(page)):
        path = page if not target else (page.parent / target).resolve()
        assert path.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in _anchors(path), f"{page.name} links to {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page):
    named = set(
        re.findall(r"`((?:cc|tests|tools|tensorflow_recursion|docs|benchmarks|examples)/[\w./]+)`", page.read_text())
    )
    assert {name for name in named if not (ROOT / name).exists()} - GENERATED == set()


def _pages_of_design():
    """The page of the design and those that its table names."""
    first = ROOT / "docs" / "design.md"
    _, _, table = first.read_text().partition("## Pages")
    return [first, *(first.parent / name for name in re.findall(r"^\| \[[^]]*\]\((.*?)\)", table, flags=re.MULTILINE))]


def test_design_names_all_of_its_pages():
    assert set((ROOT / "docs" / "design").glob("*.md")) <= set(_pages_of_design())


def _read_in_one_go():
    return sorted({str(page.relative_to(ROOT)) for page in PAGES} - LOOKED_UP)


def test_pages_that_may_be_long_are_there():
    assert {page for page in LOOKED_UP if not (ROOT / page).exists()} == set()


@pytest.mark.parametrize("page", _read_in_one_go())
def test_page_can_be_read_in_one_go(page):
    assert len((ROOT / page).read_text().split()) <= MOST_WORDS


@pytest.mark.parametrize("page", _pages_of_design(), ids=lambda page: page.stem)
def test_page_of_the_design_has_a_drawing(page):
    assert "/design_" in page.read_text()
