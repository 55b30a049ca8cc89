import asyncio
import os
import stat

from infrastructure.tools import TOOLS, files


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_created_with_its_parents(call, context):
    output = call("write", path="a/b/c.txt", content="é\nb")

    assert (output.content, output.is_error) == ("Wrote 2 lines (4 bytes) to a/b/c.txt", False)
    assert (context.cwd / "a/b/c.txt").read_bytes() == "é\nb".encode()


def test_the_text_is_written_as_it_is(call, context):
    text = "a\r\nb\u2028\x85\0c\n"

    call("write", path="a.txt", content=text)

    assert (context.cwd / "a.txt").read_bytes() == text.encode()


def test_a_lone_surrogate_is_replaced(call, context):
    call("write", path="a.txt", content="\ud83d")

    assert (context.cwd / "a.txt").read_bytes() == "\ufffd".encode()


def test_a_new_file_has_the_usual_mode_and_an_old_one_keeps_its_own(call, context):
    script = context.cwd / "script"
    script.write_text("old")
    script.chmod(0o1750)
    usual = context.cwd / "usual"
    usual.touch()

    call("write", path="script", content="new")
    call("write", path="new", content="new")

    assert script.read_text() == "new"
    assert mode(script) == 0o1750
    assert mode(context.cwd / "new") == mode(usual)


def test_a_person_is_shown_what_is_no_text_as_well(context):
    (context.cwd / "a.bin").write_bytes(b"one\0\xfftwo")
    write = next(tool for tool in TOOLS if tool.name == "write")

    plan = asyncio.run(write.plan({"path": "a.bin", "content": "new"}, context))

    assert (plan.change.before, plan.change.after) == ("one\0\ufffdtwo", "new")
    assert plan.unseen.is_error


def test_what_stands_there_already_may_be_written_unread(context):
    (context.cwd / "a.txt").write_text("one\n")
    write = next(tool for tool in TOOLS if tool.name == "write")

    def unseen(text):
        plan = asyncio.run(write.plan({"path": "a.txt", "content": text}, context))
        return plan.unseen

    assert unseen("one\n") is None
    assert "Read it first" in unseen("two\n").content


def test_a_symbolic_link_stays_one(call, context):
    (context.cwd / "real").write_text("old")
    (context.cwd / "link").symlink_to("real")
    (context.cwd / "dangling").symlink_to("later")

    call("write", path="link", content="new")
    call("write", path="dangling", content="new")

    assert (context.cwd / "link").is_symlink()
    assert (context.cwd / "real").read_text() == "new"
    assert (context.cwd / "dangling").is_symlink()
    assert (context.cwd / "later").read_text() == "new"


def test_a_failure_leaves_the_old_file_and_nothing_else(call, context, monkeypatch):
    (context.cwd / "a.txt").write_text("old")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    output = call("write", path="a.txt", content="new")

    named = f"No space left on device: {context.cwd / 'a.txt'}"
    assert (output.content, output.is_error) == (named, True)
    assert [path.name for path in context.cwd.iterdir()] == ["a.txt"]
    assert (context.cwd / "a.txt").read_text() == "old"


def test_a_reader_sees_the_old_file_or_the_new_one(call, context):
    (context.cwd / "a.txt").write_text("old")

    with (context.cwd / "a.txt").open() as reader:
        call("write", path="a.txt", content="new")
        assert reader.read() == "old"

    assert [path.name for path in context.cwd.iterdir()] == ["a.txt"]


def test_directories_pipes_and_devices_are_refused(call, context):
    (context.cwd / "folder").mkdir()
    os.mkfifo(context.cwd / "pipe")

    for path in ("folder", "pipe", "/dev/null", "", "."):
        assert call("write", path=path, content="x").is_error

    assert stat.S_ISFIFO((context.cwd / "pipe").stat().st_mode)
    assert sorted(path.name for path in context.cwd.iterdir()) == ["folder", "pipe"]


def test_a_file_in_the_place_of_a_folder_is_an_error(call, context):
    (context.cwd / "a").write_text("a file")

    output = call("write", path="a/b", content="x")

    assert output.is_error
    assert str(context.cwd / "a") in output.content


def test_a_name_as_long_as_names_get(call, context):
    name = "n" * 255

    assert not call("write", path=name, content="x").is_error
    assert call("write", path=name + "n", content="x").is_error


def test_a_read_only_file_is_refused(call, context, monkeypatch):
    """Replacing it would be possible; the system's answer is simulated, for root gets another."""
    (context.cwd / "a.txt").write_text("old")
    monkeypatch.setattr(files.os, "access", lambda *_arguments: False)

    output = call("write", path="a.txt", content="new")

    assert "read-only" in output.content
    assert (context.cwd / "a.txt").read_text() == "old"
