"""A repository, or a shared folder, that came from somebody else: its files reach for nothing."""

import os
import socket
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from app.cli import leftfold
from app.configuration import MOST_BYTES as MOST_SETTINGS
from app.configuration import left_out as left_out_settings
from app.errors import UsageError
from app.instructions import MOST_BYTES, context_files, left_out, project_root, system_prompt
from app.settings import run_settings
from infrastructure.safe_files import NotTrustedError, beginning, is_own, require_trusted, whole
from tests.app.programs import Program
from tests.app.repl.terminal import Person
from tests.server import ScriptedServer, reply

SECRET = "the secret of the user"
STRANGER = 12345

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def project(tmp_path, home, monkeypatch):
    """A cloned repository, with a working directory in it, and a private file outside of it."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
    (tmp_path / "private").write_text(SECRET)
    monkeypatch.chdir(folder / "src")
    return folder


def give_away(path, *, link=True):
    os.chown(path, STRANGER, STRANGER, follow_symlinks=not link)


def link_outside(path):
    path.symlink_to(path.parents[1] / "private")


def link_by_steps(path):
    (path.parent / "step").symlink_to("..")
    path.symlink_to("step/private")


def link_to_a_neighbour(path):
    (neighbour := path.parents[1] / f"{path.parent.name} of the user").mkdir()
    (neighbour / "private").write_text(SECRET)
    path.symlink_to(neighbour / "private")


def link_to_the_environment(path):
    path.symlink_to("/proc/self/environ")


def file_of_somebody_else(path):
    path.write_text(SECRET)
    give_away(path)


def link_of_somebody_else(path):
    (path.parent / "inner").write_text(SECRET)
    path.symlink_to("inner")
    give_away(path)


def link_to_a_file_of_somebody_else(path):
    (path.parent / "inner").write_text(SECRET)
    give_away(path.parent / "inner")
    path.symlink_to("inner")


def hard_link_in_a_folder_of_somebody_else(path):
    os.link(path.parents[1] / "private", path)
    give_away(path.parent)


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))


KINDS = [
    link_outside,
    link_by_steps,
    link_to_a_neighbour,
    link_to_the_environment,
    pipe,
    device,
    bound_socket,
    *(
        pytest.param(kind, marks=needs_root)
        for kind in (
            file_of_somebody_else,
            link_of_somebody_else,
            link_to_a_file_of_somebody_else,
            hard_link_in_a_folder_of_somebody_else,
        )
    ),
]


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
@pytest.mark.parametrize("kind", KINDS)
def test_instructions_that_reach_for_something_are_left_out_and_said(
    project, home, monkeypatch, kind, name
):
    monkeypatch.setenv("PRIVATE", SECRET)
    kind(project / name)
    cwd = str(project / "src")

    told = system_prompt(cwd, context_files(home, cwd))

    assert SECRET not in told
    assert context_files(home, cwd) == ()
    [said] = left_out(home, cwd)
    assert said.startswith(f"{project / name} is left out: ")


@pytest.mark.parametrize("kind", KINDS)
def test_settings_of_a_project_that_reach_for_something_are_left_out_and_said(project, kind):
    kind(project / ".leftfold.toml")

    assert run_settings().system_prompt is None
    if kind is hard_link_in_a_folder_of_somebody_else:  # it is no project of ours any more
        assert left_out_settings() == []
        return
    [said] = left_out_settings()
    assert said.startswith(f"{project / '.leftfold.toml'} is left out: ")
    assert said in CliRunner().invoke(leftfold, ["config"]).output


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_that_a_projects_settings_name_is_a_file_of_the_project(project, kind):
    (project / ".leftfold.toml").write_text('append_system_prompt = "@prompt.md"')
    kind(project / "prompt.md")

    if kind is hard_link_in_a_folder_of_somebody_else:  # it is no project of ours any more
        assert project_root(str(project / "src")) is None
        return
    with pytest.raises(UsageError, match=r"prompt\.md.*no file of the project"):
        run_settings()


def test_links_inside_of_the_project_are_followed(project, home):
    (project / "docs").mkdir()
    (project / "docs" / "for agents.md").write_text("be kind")
    (project / "AGENTS.md").symlink_to("docs/for agents.md")
    (project / "src" / "AGENTS.md").symlink_to(project / "AGENTS.md")

    assert [file.text for file in context_files(home, str(project / "src"))] == ["be kind"] * 2
    assert left_out(home, str(project / "src")) == []


def test_a_project_that_is_reached_by_a_link_is_the_same(project, home):
    (project / "AGENTS.md").write_text("be kind")
    (by_link := project.parent / "by a link").symlink_to(project)

    assert [file.text for file in context_files(home, str(by_link / "src"))] == ["be kind"]


@needs_root
def test_a_file_of_ones_own_counts_in_a_folder_of_somebody_else(project):
    (project / "prompt.md").write_text("mine")
    give_away(project)

    require_trusted(project / "prompt.md", project)


@pytest.mark.parametrize(("owner", "is_ours"), [(0, True), (1000, True), (STRANGER, False)])
def test_what_is_the_users_or_roots_counts(monkeypatch, owner, is_ours):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert is_own(SimpleNamespace(st_uid=owner)) == is_ours


def test_no_more_is_read_of_a_file_than_was_asked_for(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 100)

    assert beginning(tmp_path / "file", 10) == (b"x" * 10, 100)
    assert whole(tmp_path / "file", 100) == b"x" * 100
    with pytest.raises(NotTrustedError, match="larger than 99 bytes"):
        whole(tmp_path / "file", 99)


def test_what_a_user_links_into_their_home_is_theirs(project, home):
    home.mkdir()
    (home / "AGENTS.md").symlink_to(project.parent / "private")

    assert [file.text for file in context_files(home, str(project))] == [SECRET]


def test_a_link_above_the_project_stays_in_its_folder(project, home):
    (project.parents[0] / "AGENTS.md").symlink_to("/proc/self/environ")

    assert context_files(home, str(project)) == ()
    assert len(left_out(home, str(project))) == 1


@needs_root
def test_what_lies_above_the_project_counts_only_if_it_is_the_users(project, home):
    (project.parent / "AGENTS.md").write_text("above")
    assert [file.text for file in context_files(home, str(project))] == ["above"]

    give_away(project.parent / "AGENTS.md")
    assert context_files(home, str(project)) == ()
    assert len(left_out(home, str(project))) == 1


def test_a_file_left_out_leaves_room_for_the_other_name(project, home):
    link_outside(project / "AGENTS.md")
    (project / "CLAUDE.md").write_text("be kind")

    assert [file.text for file in context_files(home, str(project))] == ["be kind"]


@needs_root
@pytest.mark.parametrize("what", ["the link", "the folder", "its target"])
def test_a_git_that_is_not_ours_makes_no_project(tmp_path, project, what):
    shared = tmp_path / "shared"
    (shared / "here").mkdir(parents=True)
    if what == "its target":
        (shared / ".git").mkdir()
        give_away(shared / ".git")
    else:
        (shared / ".git").symlink_to(project / ".git")
        give_away(shared / ".git" if what == "the link" else shared)

    assert project_root(str(shared / "here")) is None
    assert project_root(str(project / "src")) == project


@pytest.mark.parametrize("kind", [pipe, device])
def test_what_a_person_names_is_read_without_waiting(project, home, kind):
    kind(project / "prompt.md")
    with pytest.raises(UsageError, match="no regular file"):
        run_settings(system_prompt=f"@{project / 'prompt.md'}")
    home.mkdir()
    kind(home / "settings.toml")
    with pytest.raises(UsageError, match="no regular file"):
        run_settings()


def test_what_is_read_has_a_size(project, home):
    (project / "AGENTS.md").write_text("x" * (MOST_BYTES + 1))
    with (project / "large.md").open("wb") as file:
        file.truncate(50 * MOST_SETTINGS)

    [told] = context_files(home, str(project))
    assert len(told.text) < MOST_BYTES + 200
    with pytest.raises(UsageError, match="larger than"):
        run_settings(system_prompt=f"@{project / 'large.md'}")


def test_a_program_is_told_on_stderr_and_a_person_in_the_banner(tmp_path):
    with ScriptedServer([reply("Hi.")]) as server:
        program = Program(tmp_path, server, SOME_KEY=SECRET)
        (program.cwd / "AGENTS.md").symlink_to("/proc/self/environ")
        (program.cwd / ".leftfold.toml").symlink_to(tmp_path / "nowhere")
        done = program.run("-p", "hi")
        person = Person(tmp_path, server, size=(40, 300))
        person.waits("AGENTS.md is left out: it lies outside of ")
        person.says("q")
        person.ended()

    assert done.code == 0, done
    assert done.err.count("AGENTS.md is left out: it lies outside of ") == 1
    assert SECRET not in str([received.json for received in server.requests])
