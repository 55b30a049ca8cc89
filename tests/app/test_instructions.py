"""What the model is told: our words, and the files of the home, the way down and the project."""

import json
import os
import re
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from app.configuration import DEFAULT_TOOLS, READING_TOOLS, TOOL_NAMES
from app.instructions import (
    MOST_BYTES,
    context_files,
    project_root,
    surroundings,
    system_prompt,
)
from domain.conversation import Conversation
from infrastructure.model.offline import count_tokens
from infrastructure.tools import TOOLS
from tests.app.programs import Program, events
from tests.server import ScriptedServer, call, reply


@pytest.fixture
def project(tmp_path, home):
    """A git repository with a folder in it, below a folder of the user's."""
    folder = tmp_path / "all" / "project" / "src"
    folder.mkdir(parents=True)
    home.mkdir()
    (folder.parent / ".git").mkdir()
    return folder


def found(home, cwd):
    return [(file.path, file.text) for file in context_files(home, str(cwd))]


def test_the_homes_file_comes_first_and_the_nearest_last(project, home):
    paths = [
        home / "AGENTS.md",
        project.parents[1] / "AGENTS.md",
        project.parent / "AGENTS.md",
        project / "AGENTS.md",
    ]
    for path in paths:
        path.write_text(f"say {path}")

    assert found(home, project) == [(path, f"say {path}") for path in paths]


def test_claude_md_counts_only_where_there_is_no_agents_md(project, home):
    (project.parent / "CLAUDE.md").write_text("of the project")
    (project / "CLAUDE.md").write_text("not this")
    (project / "AGENTS.md").write_text("this")

    assert [text for _, text in found(home, project)] == ["of the project", "this"]


def test_a_git_of_somebody_else_makes_no_project(project, monkeypatch):
    assert project_root(str(project)) == project.parent

    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    if (project.parent / ".git").stat().st_uid != 0:
        assert project_root(str(project)) is None


def test_a_home_on_the_way_is_not_read_twice(tmp_path):
    (tmp_path / "AGENTS.md").write_text("once")
    (tmp_path / "deep").mkdir()

    assert len(found(tmp_path, tmp_path / "deep")) == 1


def test_a_long_file_is_cut_between_characters_and_the_model_is_told(project, home):
    (project / "AGENTS.md").write_text("x" + "語" * MOST_BYTES)

    [(_, text)] = found(home, project)

    assert "\ufffd" not in text
    assert text.endswith("語\n(Only the first 65,536 of 196,609 bytes stand here: read the rest.)")
    assert len(text.encode()) < MOST_BYTES + 100


@pytest.mark.parametrize(("size", "is_whole"), [(MOST_BYTES, True), (MOST_BYTES + 1, False)])
def test_a_file_of_just_the_most_bytes_is_whole(project, home, size, is_whole):
    (project / "AGENTS.md").write_text("x" * size)

    [(_, text)] = found(home, project)
    assert text.partition("\n")[0] == "x" * MOST_BYTES
    assert ("Only the first" in text) != is_whole


def test_undecodable_bytes_are_replaced_and_a_bom_is_dropped(project, home):
    (project / "AGENTS.md").write_bytes(b"\xef\xbb\xbfuse \xff tabs")

    assert [text for _, text in found(home, project)] == ["use \ufffd tabs"]


def test_what_is_no_file_is_passed_over_and_what_cannot_be_read_is_named(project, home):
    os.mkfifo(project / "AGENTS.md")
    (project.parent / "AGENTS.md").mkdir()
    (project / "CLAUDE.md").symlink_to(project / "CLAUDE.md")

    [(path, text)] = found(home, project)

    assert path == project / "CLAUDE.md"
    assert text == "(This file cannot be read: Too many levels of symbolic links.)"


def test_the_prompt_has_our_words_then_each_file_with_its_path_then_what_was_added(project, home):
    (project / "AGENTS.md").write_text("Use tabs.\n")
    files = context_files(home, str(project))

    whole = system_prompt(str(project), files, addition="Be brief.")
    ours, said, file, added, around = whole.rsplit("\n\n", 4)

    assert ours.startswith("You are Leftfold")
    assert "Follow them" in said
    assert file == f'<file path="{project}/AGENTS.md">\nUse tabs.\n</file>'
    assert added == "Be brief."
    assert f"Directory: {project}\n" in around
    replaced = system_prompt(str(project), files, replacement="You are a poet.")
    assert replaced.startswith("You are a poet.\n\nThe files below")
    assert system_prompt(str(project), files, replacement="").startswith("The files below")


OFFERS = [
    DEFAULT_TOOLS,
    READING_TOOLS,
    TOOL_NAMES,
    ("read",),
    ("read", "write"),
    ("bash",),
    ("grep", "read"),
    ("find",),
]


@pytest.mark.parametrize("offered", OFFERS)
def test_no_text_names_a_tool_that_is_not_offered(offered):
    told = [system_prompt("/w", tools=offered)]
    told += [json.dumps(tool.definition()) for tool in TOOLS if tool.name in offered]
    # As an English word a name may stand anywhere; as a tool it is used, or no word at all.
    for name in set(TOOL_NAMES) - set(offered):
        is_told = re.compile(
            rf"\b(use|with|with grep and) {name}\b|\b(?:bash|ls)\b(?<=\b{name})(?!-)|`{name}`"
        )
        assert not any(map(is_told.search, told)), name


@pytest.mark.parametrize("offered", [DEFAULT_TOOLS, READING_TOOLS])
def test_what_every_request_says_is_short(offered):
    tools = [tool.definition() for tool in TOOLS if tool.name in offered]
    system = system_prompt("/home/somebody/projects/shop", tools=offered)

    assert count_tokens({"system": system, "tools": tools, "messages": []}) < 1_200


def test_what_is_the_same_everywhere_comes_first(project, home):
    here, there = (system_prompt(cwd).partition("Directory: ") for cwd in ("/here", "/there"))

    assert here[0] == there[0]
    assert here[2].startswith("/here\n")


BRANCHES = {
    "ref: refs/heads/topic/a-1\n": "git branch topic/a-1",
    "0123456789abcdef0123456789abcdef01234567\n": "git commit 0123456789ab",
    "0123456789abcdef" * 4 + "\n": "git commit 0123456789ab",
    "0123456789abcdef\n": "git at no known commit",
    "a secret that is no branch\n": "git at no known commit",
}


@pytest.mark.parametrize("head", BRANCHES)
def test_the_day_and_the_branch_are_told_as_they_were_at_the_beginning(project, head):
    root = project / ".git"
    root.mkdir(exist_ok=True)
    (root / "HEAD").write_text(head)
    talk = started(str(project))

    told = surroundings(str(project), talk, project)
    assert f"began: {talk.created_on:%Y-%m-%d}, {BRANCHES[head]}\n" in told

    talk.change_instructions(system_prompt(str(project), surroundings=told), [])
    (root / "HEAD").write_text("ref: refs/heads/other\n")
    assert surroundings(str(project), talk, project) == told
    assert "git branch other" in surroundings(str(project.parent), talk, project)


@pytest.mark.parametrize("where", ["{main}/.git/worktrees/topic", "../main/.git/worktrees/topic"])
def test_a_worktree_tells_its_own_branch(tmp_path, where):
    main, tree = tmp_path / "main", tmp_path / "tree"
    (main / ".git" / "worktrees" / "topic").mkdir(parents=True)
    (main / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (main / ".git" / "worktrees" / "topic" / "HEAD").write_text("ref: refs/heads/topic\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {where.format(main=main)}\n")

    assert "git branch topic\n" in surroundings(str(tree), started(str(tree)), tree)
    (tree / ".git").write_bytes(b"gitdir: no\0path\n")
    assert "git at no known commit\n" in surroundings(str(tree), started(str(tree)), tree)


def test_a_head_that_leads_elsewhere_or_blocks_tells_nothing(project):
    root = project / ".git"
    root.mkdir(exist_ok=True)
    talk = started(str(project))
    (root / "HEAD").symlink_to("/proc/self/environ")
    assert "git at no known commit" in surroundings(str(project), talk, project)
    (root / "HEAD").unlink()
    os.mkfifo(root / "HEAD")
    assert "git at no known commit" in surroundings(str(project), talk, project)


def started(cwd):
    return Conversation.start(uuid4(), timestamp=datetime(2026, 12, 2, tzinfo=UTC), cwd=cwd)


def test_a_path_that_is_no_text_can_be_told(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "AGENTS.md").write_text("hello")

    system_prompt(str(folder), context_files(tmp_path, str(folder))).encode()


# -- the real program ------------------------------------------------------------------------------


def systems(server):
    return [
        "".join(part["text"] for part in request.json["system"])
        if isinstance(request.json["system"], list)
        else request.json["system"]
        for request in server.requests
    ]


def test_a_changed_file_is_a_changed_instruction_and_an_unchanged_one_is_none(tmp_path):
    with ScriptedServer([reply("One."), reply("Two."), reply("Three.")]) as server:
        program = Program(tmp_path, server)
        agents = program.cwd / "AGENTS.md"
        agents.write_text("Use tabs.")
        assert program.run("-p", "go").code == 0
        assert program.run("-c", "-p", "go").code == 0
        agents.write_text("Use spaces.")
        assert program.run("-c", "-p", "go").code == 0
        server.prefix_violations.clear()  # new instructions move the beginning: that is the point

        told = systems(server)
        assert ["Use tabs." in system for system in told] == [True, True, False]
        assert "Use spaces." in told[2]
        assert str(agents) in told[0]
        changes = [e for e in events(program.log()) if e["topic"] == "InstructionsChanged"]
        assert len(changes) == 2


def test_flags_replace_and_add_to_the_instructions(tmp_path):
    with ScriptedServer([reply("One.")]) as server:
        program = Program(tmp_path, server)
        (program.cwd / "poet.txt").write_text("You are a poet.")
        done = program.run(
            "-p", "go", "--system-prompt", "@poet.txt", "--append-system-prompt", "Rhyme."
        )
        assert done.code == 0
        assert systems(server) == ["You are a poet.\n\nRhyme."]
        missing = program.run("-p", "go", "--system-prompt", "@nothing.txt")
        assert missing.code == 2
        assert "nothing.txt: No such file" in missing.complaint


def test_the_names_of_tools_are_the_tools():
    assert tuple(tool.name for tool in TOOLS) == TOOL_NAMES
    assert tuple(tool.name for tool in TOOLS if not tool.needs_approval) == READING_TOOLS


@pytest.mark.parametrize(
    ("flags", "offered"),
    [
        (["--tools", "write, read"], ["read", "write"]),
        (["--read-only"], ["read", "ls", "find", "grep"]),
        (["--tools", "grep,bash"], ["bash", "grep"]),
        (["--read-only", "--tools", "bash,read"], ["read"]),
        ([], ["bash", "read", "write", "edit"]),
    ],
)
def test_flags_choose_which_tools_are_offered(tmp_path, flags, offered):
    with ScriptedServer([reply("One.")]) as server:
        done = Program(tmp_path, server).run("-p", "go", *flags)

        assert done.code == 0
        assert [tool["name"] for tool in server.requests[0].json["tools"]] == offered


def test_a_tool_that_is_not_offered_does_not_run(tmp_path):
    with ScriptedServer([reply(call("bash", command="touch hit")), reply("Well.")]) as server:
        program = Program(tmp_path, server)
        done = program.run("-p", "go", "--read-only", "--yes")

        assert (done.code, done.out) == (0, "Well.\n")
        assert not (program.cwd / "hit").exists()


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--tools", "bsh"], "--tools: there is no tool 'bsh'; did you mean 'bash'?"),
        (["--tools", ","], "--tools: name at least one of bash, read, write, edit"),
        (["--read-only", "--tools", "bash"], "these settings leave no tool at all"),
    ],
)
def test_tools_that_make_no_sense_are_wrong_usage(tmp_path, flags, complaint):
    done = Program(tmp_path).run("--offline", "-p", "go", *flags)

    assert done.code == 2
    assert complaint in done.complaint
