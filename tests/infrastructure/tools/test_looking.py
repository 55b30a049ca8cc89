"""The tools that list, find and search: what git leaves out is left out; nothing blocks or hangs."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from infrastructure.tools import TOOLS, looking, searching
from infrastructure.tools.walking import glob, walk


@pytest.fixture
def project(context):
    """A repository with ignored files, links that turn in a circle, and a pipe."""
    cwd = context.cwd
    subprocess.run(["git", "init", "-q", cwd], check=True)
    files = {
        ".gitignore": "*.log\nbuild/\n/only-here.txt\n",
        ".git/info/exclude": "mine.txt\n",
        "src/app.py": "def needle():\n    return 1\n",
        "src/.gitignore": "\ufeff!keep.log\n*.tmp\n",
        "src/keep.log": "needle kept\n",
        "src/drop.log": "needle dropped\n",
        "src/a.tmp": "needle\n",
        "src/only-here.txt": "needle here\n",
        "only-here.txt": "needle\n",
        "mine.txt": "needle\n",
        "build/out.py": "needle\n",
        ".hidden/x.py": "needle hidden\n",
        "node.bin": "needle\0\n",
    }
    for name, text in files.items():
        path = cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (cwd / "src" / "loop").symlink_to("..")
    os.mkfifo(cwd / "pipe")
    return cwd


SEEN = [
    ".gitignore",
    ".hidden/x.py",
    "node.bin",
    "src/.gitignore",
    "src/app.py",
    "src/keep.log",
    "src/only-here.txt",
]


def test_the_walk_sees_what_git_sees(project):
    seen = sorted(one.name for one in walk(project) if one.is_regular)
    git = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    links = {"src/loop"}

    assert seen == SEEN
    assert sorted(set(git.stdout.split()) - links) == SEEN


def test_an_inner_folder_knows_the_rules_above_it(project):
    assert [one.name for one in walk(project / "src") if one.is_regular] == [
        ".gitignore",
        "app.py",
        "keep.log",
        "only-here.txt",
    ]


def test_a_folder_that_is_ignored_is_searched_if_it_is_named(call, project):
    assert call("grep", pattern="needle", path="build").content == "out.py:1: needle\n"


def test_ls_shows_all_and_says_what_it_is(call, project):
    assert call("ls", path="src").content.split("\n") == [
        ".gitignore",
        "a.tmp",
        "app.py",
        "drop.log",
        "keep.log",
        "loop@",
        "only-here.txt",
    ]
    assert call("ls", limit=1).content == ".git/\n[1 of 9 names]"
    assert len(call("ls", limit=9).content.split("\n")) == 9
    assert "Did you mean src?" in call("ls", path="scr").content
    assert "is not a directory" in call("ls", path="mine.txt").content
    (project / "empty").mkdir()
    assert call("ls", path="empty").content == "(empty directory)"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", [".hidden/x.py", "src/app.py"]),
        ("src/*.py", ["src/app.py"]),
        ("**/*.{py,log}", [".hidden/x.py", "src/app.py", "src/keep.log"]),
        ("src", ["src/"]),
        ("[!a]*.log", ["src/keep.log"]),
        ("[^a]*.log", ["src/keep.log"]),
        ("pi?e", ["pipe"]),
        ("nothing", ["(nothing found)"]),
    ],
)
def test_find_takes_names_and_paths(call, project, pattern, found):
    assert call("find", pattern=pattern).content.split("\n") == found


@pytest.mark.parametrize("pattern", ["**/" * 5 + "x", "{a,b}" * 5, "{" + "a," * 65 + "}", "[b-a]"])
def test_what_is_no_glob_is_told(call, project, pattern):
    assert "is no glob" in call("find", pattern=pattern).content
    assert "cannot be used" in call("grep", pattern="x", glob=pattern).content


def test_a_place_that_is_not_there_comes_with_names_like_it(call, project):
    for output in (call("find", pattern="*", path="scr"), call("grep", pattern="x", path="scr")):
        assert output.is_error
        assert "Did you mean src?" in output.content


def test_find_is_capped(call, project):
    output = call("find", pattern="*", limit=2).content

    assert output == ".gitignore\n.hidden/\n[The first 2; there are more]"


def test_grep_says_where(call, project):
    assert sorted(call("grep", pattern=r"needle\b").content.splitlines()) == [
        ".hidden/x.py:1: needle hidden",
        "src/app.py:1: def needle():",
        "src/keep.log:1: needle kept",
        "src/only-here.txt:1: needle here",
    ]
    assert call("grep", pattern="NEEDLE", glob="*.py", ignore_case=True, path="src").content == (
        "app.py:1: def needle():\n"
    )
    assert call("grep", pattern="needle()", literal=True).content == "src/app.py:1: def needle():\n"
    assert call("grep", pattern="return", context=1, path="src/app.py").content == (
        "app.py-1- def needle():\napp.py:2:     return 1\n"
    )
    assert call("grep", pattern="zzz").content == "(nothing found)"


def test_lines_around_matches_are_shown_once_and_gaps_are_marked(call, project):
    (project / "a.txt").write_text("needle\nb\nc\nneedle\ne\nf\ng\nneedle\n")

    assert call("grep", pattern="needle", context=1, path="a.txt").content.splitlines() == [
        "a.txt:1: needle", "a.txt-2- b", "a.txt-3- c", "a.txt:4: needle", "a.txt-5- e", "--",
        "a.txt-7- g", "a.txt:8: needle",
    ]  # fmt: skip


def test_the_limit_of_grep_counts_over_all_files(call, project):
    output = call("grep", pattern="needle", path="src", limit=1).content

    assert output == "app.py:1: def needle():\n[The first 1 matches; there may be more]\n"
    assert len(call("grep", pattern="needle", path="src", limit=2).content.splitlines()) == 3


def test_the_process_that_searches_knows_no_credential(call, project, monkeypatch, tmp_path):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    output = call("grep", pattern="needle").content

    assert "PATH=" in output
    assert "sk-secret" not in output


def test_a_search_that_is_stopped_ends(context, project, monkeypatch):
    """Its process would go on, and the program wait for it."""
    monkeypatch.setattr(looking, "SECONDS", 3600.0)
    (project / "a.txt").write_text("a" * 60 + "\n")
    call = {"pattern": "^(a+)+b", "path": "a.txt"}
    tool = next(tool for tool in TOOLS if tool.name == "grep")

    def children():
        lists = Path("/proc/self/task").glob("*/children")
        return {child for list_ in lists for child in list_.read_text().split()}

    before = children()  # a fork server may be one

    def is_searching():
        return bool(children() - before)

    async def stopped():
        task = asyncio.create_task(tool.run(call, context))
        while not is_searching():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stopped())
    assert not is_searching()


def test_a_pipe_that_took_the_place_of_a_file_is_not_waited_for(project):
    """Nor does it cost the other files their matches; a folder neither."""
    for name in (b"pipe", b"src"):
        assert searching._search(name, re.compile("x"), 0, 1, os.fsencode(project)) == 0


def test_grep_is_capped_in_matches_and_in_length(call, project):
    (project / "long.txt").write_text("needle " + "x" * 100_000 + "\nneedle\nneedle\n")

    output = call("grep", pattern="needle", path="long.txt", limit=2).content

    assert "… (100,007 characters)" in output
    assert output.endswith("[The first 2 matches; there may be more]\n")
    assert len(output) < 1_000


@pytest.mark.parametrize("pattern", ["(", "*", "a{99999999999}"])
def test_what_is_no_expression_is_told(call, project, pattern):
    output = call("grep", pattern=pattern)

    assert output.is_error
    assert "cannot be used" in output.content


def test_a_pattern_that_takes_for_ever_is_stopped(call, project, monkeypatch):
    monkeypatch.setattr(looking, "SECONDS", 1.5)
    (project / "a.txt").write_text("needle first\n" + "a" * 60 + "\n")

    output = call("grep", pattern="(a+)+$|needle first|(a+)+b", path="a.txt").content
    assert "Stopped" not in output or "needle first" in output
    output = call("grep", pattern="^needle|^(a+)+b", path="a.txt").content

    assert output.startswith("a.txt:1: needle first\n[Stopped after 1.5 s")


def test_a_glob_that_would_take_for_ever_does_not(project):
    assert not glob("*a" * 60 + "b")("a" * 250)


def test_names_that_are_no_text_are_shown(call, project):
    with open(os.fsencode(project) + b"/caf\xe9.txt", "wb") as file:  # noqa: PTH123
        file.write(b"needle odd\n")

    assert "caf\ufffd.txt" in call("ls").content
    assert "caf\ufffd.txt" in call("find", pattern="caf*").content
    assert "caf\ufffd.txt:1: needle odd" in call("grep", pattern="needle odd").content


def test_a_walk_ends_when_its_time_is_over(call, project, monkeypatch):
    monkeypatch.setattr(looking, "SECONDS", -1.0)

    assert call("find", pattern="*").content.startswith("[Stopped after")
