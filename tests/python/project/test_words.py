"""Words that docs/glossary.md has retired do not come back."""
# SPDX-License-Identifier: Apache-2.0

import pathlib
import re
import subprocess

import pytest

pytestmark = pytest.mark.every_case

ROOT = pathlib.Path(__file__).parents[3]
GLOSSARY = "docs/glossary.md"
PLACES = (
    "cc", "tests", "tensorflow_recursion", "benchmarks", "examples", "tools", "docs", "README.md", "CONTRIBUTING.md"
)  # fmt: skip
# The glossary and this file have to name them; a diagram has no prose.
EXEMPT = (GLOSSARY, "docs/pictures/", "tests/python/project/test_words.py")


def retired():
    """Each retired word with what it is called now, as the table of the glossary has them."""
    _, _, section = (ROOT / GLOSSARY).read_text().partition("## Retired words")
    rows = re.findall(r"^\| (.+) \| (.+) \|$", section, re.MULTILINE)[2:]
    return {word: now for words, now in rows for word in words.split(", ")}


RETIRED = retired()


@pytest.fixture(scope="module")
def texts():
    """The text of each file, by its name."""
    command = ["git", "ls-files", *PLACES]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.split()
    if not listed:
        pytest.skip("not a git checkout")
    names = [name for name in listed if not name.startswith(EXEMPT) and (ROOT / name).is_file()]
    return {name: (ROOT / name).read_text() for name in names}


def test_glossary_retires_words():
    assert {"Draft", "Liveness", "OddSite", "home"} <= set(RETIRED), f"the table of {GLOSSARY} reads otherwise"


@pytest.mark.parametrize("word", RETIRED)
def test_retired_word_does_not_come_back(word, texts):
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    found = [name for name, text in texts.items() if pattern.search(text)]
    assert found == [], f"'{word}' is called '{RETIRED[word]}' now ({GLOSSARY})"
