import asyncio
from difflib import unified_diff

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infrastructure.tools import TOOLS
from tests.levels import examples


@pytest.fixture
def edit(call, context):
    """Write bytes to a file, edit it, return the output and the bytes after it."""

    def run(before, *edits):
        path = context.cwd / "a.txt"
        path.write_bytes(before)
        pairs = [{"old_text": old, "new_text": new} for old, new in edits]
        output = call("edit", path="a.txt", edits=pairs)
        return output, path.read_bytes()

    return run


def test_an_edit_returns_a_diff(edit):
    output, after = edit(b"one\ntwo\nthree\n", ("two", "2"))

    assert after == b"one\n2\nthree\n"
    assert output.content == "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    assert not output.is_error


def test_the_diff_shows_a_missing_last_newline(edit):
    output, after = edit(b"one", ("one", "one\n"))

    assert after == b"one\n"
    assert output.content.endswith("-one\n\\ No newline at end of file\n+one\n")


def test_several_edits_match_the_original_and_are_made_at_once(edit):
    output, after = edit(b"a b c\n", ("c", "a"), ("a", "b"), ("b", "c"))

    assert after == b"b c a\n"
    assert not output.is_error


def test_adjacent_edits_do_not_overlap(edit):
    assert edit(b"abcd", ("ab", "1"), ("cd", "2"))[1] == b"12"


@pytest.mark.parametrize(
    ("before", "edits", "message"),
    [
        (b"a\n", [("b", "c")], "Edit 1: old_text was not found."),
        (
            b"x\n  a b\n",
            [("\ta b\n", "c")],
            "Its first line is like line 2; compare the whitespace",
        ),
        (b"a\nb\na\n", [("a", "c")], "Edit 1: old_text occurs 2 times (at lines 1, 3)"),
        (b"aaa", [("aa", "c")], "Edit 1: old_text occurs 2 times (at lines 1, 1)"),
        (b"a\n" * 20, [("a", "c")], "occurs 20 times (at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)"),
        (b"abc", [("bc", "1"), ("ab", "2")], "Edits 1 and 2 overlap"),
        (b"abc", [("abc", "1"), ("b", "2")], "Edits 1 and 2 overlap"),
        (b"a b", [("a", "1"), ("c", "2")], "Edit 2: old_text was not found."),
        (b"a", [("a", "a")], "change nothing"),
        (b"a\r\n", [("a\n", "a\r\n")], "change nothing"),
    ],
)
def test_an_edit_that_cannot_be_made_changes_nothing(edit, before, edits, message):
    output, after = edit(before, *edits)

    assert output.is_error
    assert message in output.content
    assert after == before


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb\r\n", "x\n", b"x\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n"),
        (b"a\r\nb\r\n", "\nb", "\nc", b"a\r\nc\r\n"),
        (b"a\nb\n", "b\r\n", "c\r\n", b"a\nc\n"),
        (b"a\r\nb\r\nc\nd\n", "c\nd", "x\ny", b"a\r\nb\r\nx\ny\n"),
        (b"a\r\nb\nc\nd\n", "c", "x\ny", b"a\r\nb\nx\ny\nd\n"),
        (b"a\nb\nc\r\n", "c\n", "x\ny\n", b"a\nb\nx\r\ny\r\n"),
    ],
)
def test_line_endings_are_kept(edit, before, old, new, after):
    assert edit(before, (old, new))[1] == after


def test_a_byte_order_mark_is_kept(edit):
    assert edit(b"\xef\xbb\xbfa\r\n", ("a", "b"))[1] == b"\xef\xbb\xbfb\r\n"
    assert edit(b"\xef\xbb\xbfa\n", ("\ufeffa", "b"))[1] == b"\xef\xbb\xbfb\n"


def test_bytes_that_are_not_utf8_survive(edit):
    output, after = edit(b"caf\xe9 one\n", ("one", "two"))

    assert after == b"caf\xe9 two\n"
    assert "+café two" in output.content


def test_the_diff_of_a_long_file_of_equal_lines_shows_the_changes_alone(edit):
    before = b"first\n" + b"}\n{\n\n" * 30_000 + b"last\n"

    output, _ = edit(before, ("last", "end"), ("first\n", ""))

    assert output.content == (
        "--- a/a.txt\n+++ b/a.txt\n"
        "@@ -1,4 +1,3 @@\n-first\n }\n {\n \n"
        "@@ -89999,4 +89998,4 @@\n }\n {\n \n-last\n+end\n"
    )


@pytest.mark.parametrize("apart", range(1, 11))
def test_the_diff_is_the_one_that_all_of_the_file_would_give(edit, apart):
    before = [f"{n}\n" for n in range(30)]
    after = [f"new {line}" if n in (9, 9 + apart) else line for n, line in enumerate(before)]

    output, _ = edit(
        "".join(before).encode(),
        ("\n9\n", "\nnew 9\n"),
        (f"\n{9 + apart}\n", f"\nnew {9 + apart}\n") if apart > 1 else ("10", "new 10"),
    )
    assert output.content == "".join(unified_diff(before, after, "a/a.txt", "b/a.txt"))


def test_a_long_diff_is_capped(edit, context):
    output, after = edit(b"start\nend\n", ("start\n", "line\n" * 50_000))

    assert len(output.content.encode()) <= 50 * 1024
    assert len(after) == 250_004
    assert list(context.side_files.iterdir())


def test_missing_files_directories_and_large_files_are_errors(call, context):
    edits = [{"old_text": "a", "new_text": "b"}]
    with (context.cwd / "large").open("wb") as file:
        file.truncate(30_000_000)

    assert "does not exist" in call("edit", path="b.txt", edits=edits).content
    assert "directory" in call("edit", path=".", edits=edits).content
    assert "larger than" in call("edit", path="large", edits=edits).content


def test_a_mode_and_a_link_are_kept(call, context):
    (context.cwd / "run").write_text("a")
    (context.cwd / "run").chmod(0o755)
    (context.cwd / "link").symlink_to("run")

    call("edit", path="link", edits=[{"old_text": "a", "new_text": "b"}])

    assert (context.cwd / "link").is_symlink()
    assert (context.cwd / "run").read_text() == "b"
    assert (context.cwd / "run").stat().st_mode & 0o777 == 0o755


def test_edits_of_one_file_that_run_side_by_side_are_all_made(context):
    path = context.cwd / "a.txt"
    path.write_text("".join(f"<{n}>\n" for n in range(20)))
    tool = {tool.name: tool for tool in TOOLS}["edit"]

    async def scenario():
        calls = [
            {"path": "a.txt", "edits": [{"old_text": f"<{n}>", "new_text": f"({n})"}]}
            for n in range(20)
        ]
        await asyncio.gather(*(tool.run(arguments, context) for arguments in calls))

    asyncio.run(scenario())

    assert path.read_text() == "".join(f"({n})\n" for n in range(20))


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=examples(60),
    deadline=None,
)
@given(
    before=st.lists(st.sampled_from(["a\n", "b\r\n", "c\r", "\xe9"]), max_size=8).map("".join),
    after=st.lists(st.sampled_from(["a\n", "b\r\n", "c\r", "\xe9"]), max_size=8).map("".join),
    new=st.sampled_from(["x", "x\n", "\n", ""]),
)
def test_what_is_around_an_edit_stays_byte_for_byte(edit, before, after, new):
    output, data = edit(f"{before}HERE{after}".encode(), ("HERE", new))

    assert not output.is_error
    assert data.startswith(before.encode())
    assert data.endswith(after.encode())
    assert data[len(before.encode()) : len(data) - len(after.encode())].decode() in {
        new,
        new.replace("\n", "\r\n"),
    }
