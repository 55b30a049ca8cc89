"""A file is more than its bytes: its names, owner, attributes, and where it is mounted (case R13).

Real files. What a user without rights may do is done by a child that has none.
"""

import asyncio
import concurrent.futures.thread  # noqa: F401 - a child without rights may not find it any more
import errno
import os
import shutil
import stat
import subprocess
import sys
import traceback
from contextlib import suppress

import pytest

from infrastructure.errors import ToolError
from infrastructure.tools import TOOLS, replacing
from infrastructure.tools.files import FileState

NOBODY = 65534
TOOL = {tool.name: tool for tool in TOOLS}


def as_nobody(function):
    """Run *function* in a child without rights and return what it says."""
    if os.geteuid() != 0:
        return function()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            said = function()
        except BaseException:  # noqa: BLE001 - a child of a test ends here
            said = traceback.format_exc()
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def folder(context):
    """A folder that anybody can reach, and that nobody but its owner can write to."""
    for parent in (context.cwd, *context.cwd.parents):
        with suppress(PermissionError):
            parent.chmod(parent.stat().st_mode | 0o055)
    context.cwd.chmod(0o755)
    return context.cwd


@pytest.fixture
def edited(context):
    """Edit a.txt and return what the tool said."""

    def run():
        arguments = {"path": "a.txt", "edits": [{"old_text": "old", "new_text": "new"}]}
        return str(asyncio.run(TOOL["edit"].run(arguments, context)).content)

    return run


@pytest.fixture
def file(folder):
    path = folder / "a.txt"
    path.write_text("old\n")
    path.chmod(0o666)
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_of_a_folder_that_cannot_be_written_to(file, edited):
    file.parent.chmod(0o555)
    inode = file.stat().st_ino

    said = as_nobody(edited)

    assert "+new" in said
    assert file.read_text() == "new\n"
    assert file.stat().st_ino == inode
    assert names(file.parent) == ["a.txt"]


def test_another_owners_file_in_a_sticky_folder(file, edited):
    file.parent.chmod(0o1777)
    before = file.stat()

    assert "+new" in as_nobody(edited)
    after = file.stat()
    assert file.read_text() == "new\n"
    assert (after.st_ino, after.st_uid, after.st_mode) == (
        before.st_ino,
        before.st_uid,
        before.st_mode,
    )
    assert names(file.parent) == ["a.txt"]


def test_another_owners_file_keeps_its_owner(file, edited):
    file.parent.chmod(0o777)
    owner = file.stat().st_uid

    assert "+new" in as_nobody(edited)
    assert (file.read_text(), file.stat().st_uid) == ("new\n", owner)


@pytest.mark.parametrize("before", ["old\n", "old, and much longer\n" * 9])
def test_all_names_of_a_file_are_kept(file, before):
    other = file.with_name("other")
    os.link(file, other)
    file.write_text(before)

    replacing.replace(FileState.now("a.txt", file.parent), b"new\n")

    assert other.read_text() == "new\n"
    assert other.samefile(file)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no attributes here")
def test_attributes_are_kept(file, edited):
    try:
        os.setxattr(file, "user.colour", b"red")
    except OSError:
        pytest.skip("this file system has no attributes")

    edited()

    assert file.read_text() == "new\n"
    assert os.getxattr(file, "user.colour") == b"red"


def test_attributes_that_cannot_be_given_to_another_file_are_kept(file, edited, monkeypatch):
    if not hasattr(os, "setxattr"):
        pytest.skip("no attributes here")
    os.setxattr(file, "user.colour", b"red")

    def refuse(*_arguments):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(replacing.os, "setxattr", refuse)
    edited()

    assert (file.read_text(), os.getxattr(file, "user.colour")) == ("new\n", b"red")


def test_attributes_that_the_new_file_has_of_itself_need_not_be_given(file, edited, monkeypatch):
    """The system gives some (SELinux's label), which in a container nobody may set."""
    inode = file.stat().st_ino

    def refuse(*_arguments):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(replacing.os, "listxattr", lambda *_: ["security.selinux"], raising=False)
    monkeypatch.setattr(replacing.os, "getxattr", lambda *_: b"label", raising=False)
    monkeypatch.setattr(replacing.os, "setxattr", refuse, raising=False)
    edited()

    assert file.read_text() == "new\n"
    assert file.stat().st_ino != inode  # it was replaced in one step


SCRIPT = """
import asyncio, pathlib, sys
from infrastructure.tools import TOOLS, ToolContext
tools = {tool.name: tool for tool in TOOLS}
cwd = pathlib.Path(sys.argv[1])
context = ToolContext(cwd, cwd / "outputs", "toolu_01")
for name, arguments in [
    ("edit", {"path": "a.txt", "edits": [{"old_text": "old", "new_text": "new"}]}),
    ("write", {"path": "made.txt", "content": "made"}),
]:
    print(asyncio.run(tools[name].run(arguments, context)).content)
"""


def in_mounts(folder, *commands):
    """Mount in a namespace of its own, use the tools there, and return what they said."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    mounts = " && ".join(commands)
    tried = ["unshare", "-m", "sh", "-c", mounts]
    if subprocess.run(tried, cwd=folder, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    run = f'{mounts} && exec "$0" -c "$1" "$2"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", run, sys.executable, SCRIPT, str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.getcwd()},  # noqa: PTH109 - the repository
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_bind_mounted_file_is_written_in_place(file):
    said = in_mounts(file.parent, "mount --bind a.txt a.txt")

    assert "+new" in said
    assert file.read_text() == "new\n"
    assert ".leftfold-" not in said
    assert names(file.parent) == ["a.txt", "made.txt"]


def test_a_read_only_file_system_names_the_path_of_the_call(file):
    said = in_mounts(
        file.parent, f"mount --bind {file.parent} {file.parent}", f"mount -o remount,bind,ro {file.parent}"
    )  # fmt: skip

    assert str(file) in said
    assert str(file.parent / "made.txt") in said
    assert ".leftfold-" not in said
    assert file.read_text() == "old\n"


def test_a_file_that_nobody_may_change_names_the_path_of_the_call(file, edited):
    done = subprocess.run(["chattr", "+i", file], check=False, capture_output=True)
    if shutil.which("chattr") is None or done.returncode:
        pytest.skip("chattr is not allowed here")
    try:
        said = edited()
    finally:
        subprocess.run(["chattr", "-i", file], check=True)

    assert said in {
        f"Operation not permitted: {file}",
        f"The file is read-only: {file}",
    }
    assert file.read_text() == "old\n"


def test_nothing_can_be_made_in_a_closed_folder(folder, context):
    def write():
        plan = asyncio.run(TOOL["write"].plan({"path": "b.txt", "content": "x"}, context))
        return str(plan.problem and plan.problem.content)

    said = as_nobody(write)

    assert said == f"Nothing can be created in {folder}: {folder / 'b.txt'}"


def test_what_breaks_off_in_place_is_put_back(file, edited, monkeypatch):
    os.link(file, file.with_name("other"))
    pwrite, calls = os.pwrite, []

    def full(descriptor, data, place):
        calls.append(place)
        if len(calls) == 1:
            pwrite(descriptor, data[:2], place)
            raise OSError(28, "No space left on device")
        return pwrite(descriptor, data, place)

    monkeypatch.setattr(replacing.os, "pwrite", full)
    said = edited()

    assert said == f"No space left on device: {file}"
    assert file.read_text() == "old\n"
    assert names(file.parent) == ["a.txt", "other"]


def test_a_link_that_has_taken_the_place_of_the_file_is_not_followed(file):
    other = file.with_name("other")
    other.write_text("theirs\n")
    os.link(other, file.with_name("its other name"))
    state = FileState.now("a.txt", file.parent)
    file.unlink()
    file.symlink_to(other)

    with pytest.raises(OSError, match="symbolic links"):
        replacing.replace(state, b"new\n")
    assert other.read_text() == "theirs\n"


def test_an_error_names_the_path_of_the_call_not_what_a_link_leads_to(file, monkeypatch):
    link = file.with_name("link")
    link.symlink_to(file)

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replacing.os, "fsync", full)
    with pytest.raises(OSError, match="No space") as error:
        replacing.replace(FileState.now("link", file.parent), b"new\n")
    assert error.value.filename == str(link)


def no_links(*_arguments):
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("link", [os.link, no_links])
@pytest.mark.parametrize("theirs", ["file", "folder", "link", "dangling link"])
def test_a_file_that_somebody_made_in_the_same_moment_is_not_replaced(
    folder, monkeypatch, link, theirs
):
    monkeypatch.setattr(replacing.os, "link", link)
    new = folder / "new.txt"
    state = FileState.now("new.txt", folder)
    (folder / "other").write_text("theirs\n")
    if theirs == "file":
        new.write_text("theirs\n")
    elif theirs == "folder":
        new.mkdir()
    else:
        new.symlink_to("other" if theirs == "link" else "nowhere")
    before = (new.lstat().st_ino, names(folder))

    with pytest.raises(ToolError, match="was made by somebody else meanwhile"):
        replacing.replace(state, b"ours\n")

    assert (new.lstat().st_ino, names(folder)) == before
    assert (folder / "other").read_text() == "theirs\n"


@pytest.mark.parametrize("link", [os.link, no_links])
def test_a_new_file_has_one_name_and_the_mode_of_the_umask(folder, monkeypatch, link):
    monkeypatch.setattr(replacing.os, "link", link)
    umask = os.umask(0o027)
    try:
        replacing.replace(FileState.now("deep/new.txt", folder), b"ours\n")
    finally:
        os.umask(umask)

    made = folder / "deep" / "new.txt"
    assert (made.read_bytes(), made.stat().st_nlink) == (b"ours\n", 1)
    assert stat.S_IMODE(made.stat().st_mode) == 0o640
    assert names(made.parent) == ["new.txt"]


def test_what_cannot_even_be_put_back_is_kept_in_a_copy(file, edited, monkeypatch):
    os.link(file, file.with_name("other"))

    def broken(*_arguments):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(replacing.os, "pwrite", broken)
    said = edited()

    copy = file.parent / said.rpartition("/")[2]
    assert "What was in it" in said
    assert copy.read_text() == "old\n"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
