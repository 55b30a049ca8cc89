"""What the model is told: our words, and the files of the home, the way down and the project."""

import os

import pytest

from app.instructions import MOST_BYTES, context_files, project_root, system_prompt
from app.settings import READING_TOOLS, TOOL_NAMES
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

    ours, said, file, added = system_prompt(str(project), files, addition="Be brief.").rsplit(
        "\n\n", 3
    )

    assert ours.startswith("You are Leftfold")
    assert "Follow them" in said
    assert file == f'<file path="{project}/AGENTS.md">\nUse tabs.\n</file>'
    assert added == "Be brief."
    replaced = system_prompt(str(project), files, replacement="You are a poet.")
    assert replaced.startswith("You are a poet.\n\nThe files below")
    assert system_prompt(str(project), files, replacement="").startswith("The files below")


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
        (["--read-only"], ["read"]),
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
