"""Words that docs/glossary.md has retired do not come back."""
# SPDX-License-Identifier: Apache-2.0

import pathlib
import re
import subprocess

import pytest

pytestmark = pytest.mark.every_case

ROOT = pathlib.Path(__file__).parents[3]
# The glossary itself has to name them; a diagram has no prose.
EXEMPT = ("docs/glossary.md", "docs/pictures/")

RETIRED = {
    "kTriggerOp": "kFrameStartOp",
    "kAnchorOp": "kKeepAliveOp",
    "kOpenedOp": "kAnnounceCallOp",
    "kOpenOp": "kJoinCallOp",
    "Recursion>Trigger": "Recursion>FrameStart",
    "Recursion>Anchor": "Recursion>KeepAlive",
    "Recursion>Opened": "Recursion>AnnounceCall",
    "Recursion>Open": "Recursion>JoinCall",
    "OddSite": "PartialCall",
}


def _files():
    listed = subprocess.run(
        ["git", "ls-files", "cc", "tensorflow_recursion", "docs", "README.md", "CONTRIBUTING.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout.split()
    return [ROOT / name for name in listed if not name.startswith(EXEMPT)]


@pytest.mark.parametrize("word", RETIRED)
def test_retired_word_does_not_come_back(word):
    files = _files()
    if not files:
        pytest.skip("not a git checkout")
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    found = [str(path.relative_to(ROOT)) for path in files if path.is_file() and pattern.search(path.read_text())]
    assert found == [], f"'{word}' is called '{RETIRED[word]}' now (docs/glossary.md)"
