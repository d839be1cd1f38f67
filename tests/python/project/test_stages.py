"""tools/stages.py: what is said of stages, how one that hangs ends, and what a run that is resumed skips."""
# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from limits import HANG_SECONDS

STAGES = pathlib.Path(__file__).resolve().parents[3] / "tools" / "stages.py"


def start(*arguments, directory=None):
    command = [sys.executable, str(STAGES), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=directory)


def run(*arguments, directory=None):
    process = start(*arguments, directory=directory)
    output, _ = process.communicate(timeout=HANG_SECONDS)
    return process.returncode, output


def test_all_stages_run_and_their_tests_are_counted_when_one_fails():
    status, output = run("first", "echo '3 passed, 1 failed in 0.5s'; false", "second", "echo '2 passed in 0.1s'")
    assert status == 1
    assert "== first: FAILED" in output and "== second: ok" in output
    assert output.endswith("5 passed, 1 failed\n")


def test_exit_status_is_zero_when_all_stages_pass():
    assert run("first", "true", "second", "true")[0] == 0


def test_stage_is_ended_and_the_next_one_runs_when_it_takes_longer_than_its_limit():
    status, output = run("--limit", "0.5", "slow", f"echo started; sleep {10 * HANG_SECONDS}", "next", "echo reached")
    assert status == 1
    assert "== slow: TOO LONG" in output and "reached" in output


def test_stage_ends_when_a_process_that_it_left_behind_holds_its_output():
    status, _ = run("leaves one", f"sleep {10 * HANG_SECONDS} & echo $!")
    assert status == 0


@pytest.mark.thorough
@pytest.mark.parametrize("depth", [1, 2])
def test_processes_of_a_stage_end_when_stages_is_ended(depth):
    command = f"echo child $$; exec sleep {10 * HANG_SECONDS}"
    for _ in range(depth - 1):
        command = f"'{sys.executable}' '{STAGES}' inner '{command}'"
    process = start("outer", command)
    child = next(int(line.split()[1]) for line in process.stdout if line.startswith("child "))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 1
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def git(directory, *arguments):
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A git checkout with a file of each kind, and a directory `build` that git ignores."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):  # of a hook that runs the tests
        monkeypatch.delenv(name, raising=False)
    directory = tmp_path / "checkout"
    directory.mkdir()
    (directory / ".gitignore").write_text("build/\n")
    (directory / "tracked").write_text("old")
    (directory / "link").symlink_to("tracked")
    git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message=First")
    (directory / "untracked").write_text("old")
    (directory / "build").mkdir()
    return directory


# A stage that passes, and one that fails until there is a file that git ignores.
FIRST = ["first", "echo first runs; echo '3 passed in 0.1s'"]
SECOND = ["second", "echo second runs; test -e build/mended && echo '2 passed in 0.1s'"]
RESUME = ["--resume", "build/notes/passed.json"]


def test_resumed_run_skips_what_has_passed_and_counts_it_when_a_stage_failed(checkout):
    status, output = run(*RESUME, *FIRST, *SECOND, directory=checkout)
    assert status == 1 and "passed before" not in output
    (checkout / "build" / "mended").touch()
    status, output = run(*RESUME, *FIRST, *SECOND, directory=checkout)
    assert status == 0
    assert "\n== first: passed before on this tree, " in output and "\nfirst runs" not in output
    assert "\nsecond runs" in output
    assert "3 passed (before)\n" in output and output.endswith("2 passed\n5 passed, 0 failed\n")


def test_resumed_run_begins_afresh_when_all_stages_have_passed(checkout):
    (checkout / "build" / "mended").touch()
    for _ in range(2):
        status, output = run(*RESUME, *FIRST, *SECOND, directory=checkout)
        assert status == 0 and "\nfirst runs" in output and "\nsecond runs" in output
        assert not list((checkout / "build" / "notes").iterdir())


def test_resumed_run_repeats_the_stage_that_was_interrupted(checkout):
    hangs = ["hangs", f"echo hangs now; test -e build/mended || exec sleep {10 * HANG_SECONDS}"]
    process = start(*RESUME, *FIRST, *hangs, directory=checkout)
    assert any(line == "hangs now\n" for line in process.stdout)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=HANG_SECONDS)
    (checkout / "build" / "mended").touch()
    status, output = run(*RESUME, *FIRST, *hangs, directory=checkout)
    assert status == 0
    assert "== first: passed before" in output and "\nhangs now" in output


def replace_link(checkout):
    (checkout / "link").unlink()
    (checkout / "link").symlink_to("untracked")


CHANGES = {
    "tracked file": lambda checkout: (checkout / "tracked").write_text("new"),
    "untracked file": lambda checkout: (checkout / "untracked").write_text("new"),
    "further file": lambda checkout: (checkout / "further").touch(),
    "name with a newline": lambda checkout: (checkout / "two\nlines").touch(),
    "removed file": lambda checkout: (checkout / "tracked").unlink(),
    "link": replace_link,
    "permission": lambda checkout: (checkout / "tracked").chmod(0o755),
    "untracked file is added": lambda checkout: git(checkout, "add", "untracked"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_resumed_run_repeats_what_has_passed_when_files_have_changed(checkout, change):
    run(*RESUME, *FIRST, *SECOND, directory=checkout)
    CHANGES[change](checkout)
    _, output = run(*RESUME, *FIRST, *SECOND, directory=checkout)
    assert "passed before" not in output and "\nfirst runs" in output


SAME = {
    "ignored file": lambda checkout: (checkout / "build" / "product").write_text("new"),
    "time": lambda checkout: os.utime(checkout / "tracked", (1, 1)),
    "commit without changes": lambda checkout: git(checkout, "commit", "--allow-empty", "--message=Second"),
    "file is changed and changed back": lambda checkout: [
        (checkout / "tracked").write_text(text) for text in ("new", "old")
    ],
}


@pytest.mark.parametrize("change", SAME)
def test_resumed_run_skips_what_has_passed_when_files_are_the_same(checkout, change):
    run(*RESUME, *FIRST, *SECOND, directory=checkout)
    SAME[change](checkout)
    _, output = run(*RESUME, *FIRST, *SECOND, directory=checkout)
    assert "== first: passed before" in output


def test_a_stage_about_some_files_is_skipped_when_others_have_changed(checkout):
    (checkout / "below").mkdir()
    (checkout / "below" / "file").touch()
    of_some = ["--of", "link below", *FIRST]
    run(*RESUME, *of_some, *SECOND, directory=checkout)
    (checkout / "tracked").write_text("new")
    _, output = run(*RESUME, *of_some, *SECOND, directory=checkout)
    assert "== first: passed before on the same link below, " in output and "\nfirst runs" not in output
    (checkout / "below" / "file").write_text("new")
    _, output = run(*RESUME, *of_some, *SECOND, directory=checkout)
    assert "passed before" not in output and "\nfirst runs" in output


def test_resumed_run_repeats_a_stage_when_its_command_differs(checkout):
    run(*RESUME, *FIRST, *SECOND, directory=checkout)
    _, output = run(*RESUME, "first", "echo first runs", *SECOND, directory=checkout)
    assert "passed before" not in output and "\nfirst runs" in output


@pytest.mark.parametrize(
    "flags, is_skipped",
    [(" -- SANITIZERS=asan", False), ("i", False), (" -j4 --jobserver-auth=3,4", True)],
)
def test_resumed_run_repeats_a_stage_when_make_was_given_other_variables(checkout, monkeypatch, flags, is_skipped):
    monkeypatch.setenv("MAKEFLAGS", flags)
    run(*RESUME, *FIRST, *SECOND, directory=checkout)
    monkeypatch.setenv("MAKEFLAGS", "")
    _, output = run(*RESUME, *FIRST, *SECOND, directory=checkout)
    assert ("== first: passed before" in output) == is_skipped


def test_stages_are_not_noted_when_files_change_while_they_run(checkout):
    # The stage after the change has other files than make has built the library of.
    changing = ["changing", "echo new > tracked"]
    status, output = run(*RESUME, *changing, *FIRST, directory=checkout)
    assert status == 0
    for name in ("changing", "first"):
        assert f"== {name}: not noted as passed, because files have changed" in output
    _, output = run(*RESUME, *FIRST, *SECOND, directory=checkout)
    assert "passed before" not in output


def test_notes_stay_when_a_later_stage_changes_files(checkout):
    changing = ["changing", "echo new > tracked"]
    run(*RESUME, *FIRST, *changing, directory=checkout)
    (checkout / "tracked").write_text("old")
    _, output = run(*RESUME, *FIRST, *changing, directory=checkout)
    assert "== first: passed before" in output


def test_stage_that_has_passed_runs_again_when_one_before_it_changes_files(checkout):
    changing = ["changing", "test -e build/mended && echo new > tracked"]
    run(*RESUME, *changing, *FIRST, directory=checkout)
    (checkout / "build" / "mended").touch()
    status, output = run(*RESUME, *changing, *FIRST, directory=checkout)
    assert status == 0
    assert "passed before" not in output and "\nfirst runs" in output


@pytest.mark.parametrize("notes", ['{"tree": ', '{"tree": "0", "passed": {}}', "[]"])
def test_resumed_run_runs_all_stages_when_its_notes_are_damaged(checkout, notes):
    run(*RESUME, *FIRST, *SECOND, directory=checkout)
    (checkout / "build" / "notes" / "passed.json").write_text(notes)
    _, output = run(*RESUME, *FIRST, *SECOND, directory=checkout)
    assert "passed before" not in output and "\nfirst runs" in output


@pytest.mark.parametrize("place", ["archive", "copy below a checkout"])
def test_all_stages_run_and_none_is_noted_when_there_is_no_git(request, tmp_path, monkeypatch, place):
    if place == "archive":
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
        directory = tmp_path
    else:
        directory = request.getfixturevalue("checkout") / "build"
    for _ in range(2):
        status, output = run("--resume", "passed.json", *FIRST, "fails", "false", directory=directory)
        assert status == 1
        assert output.startswith("This is not the top of a git checkout: all stages run, and none is noted.\n")
        assert "\nfirst runs" in output
    assert not (directory / "passed.json").exists()


def test_all_stages_run_when_git_is_not_installed(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    _, output = run(*RESUME, *FIRST, directory=checkout)
    assert output.startswith("This is not the top of a git checkout") and "\nfirst runs" in output
