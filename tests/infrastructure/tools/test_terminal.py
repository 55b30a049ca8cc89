"""The model is told what a terminal would show (case R15)."""

import re
from pathlib import Path

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.tools import terminal as module
from infrastructure.tools.output import MAX_BYTES, Capture
from infrastructure.tools.terminal import Terminal, shown

MOVES = [
    "\r", "\n", "\b", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[A", "\x1b[2A", "\x1b[B", "\x1b[C", "\x1b[3D", "\x1b[J",
    "\x1b[2J", "\x1b[H", "\x1b[2;3H", "\x1b[G", "\x1b[4G", "\x1b7", "\x1b8", "\x1b[E", "\x1b[F", "\x1b[31m", "\x1b[0m",
    "\x1b]0;title\x07", "abc", "x", "hello", "é", "50%",
]  # fmt: skip


def by_pyte(text):
    screen = pyte.Screen(200, 24)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    return stripped("\n".join(screen.display))


def stripped(text):
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")


@given(st.lists(st.sampled_from(MOVES), max_size=16).map("".join))
def test_it_shows_what_a_terminal_shows_however_it_is_cut(text):
    terminal = Terminal()
    pieces = "".join(terminal.feed(character) for character in text) + terminal.rest()

    assert pieces == shown(text)
    assert stripped(shown(text)) == by_pyte(text)


FRAMES = [
    "\r", "\r", "\r\r", "\r\x1b[K", "\r\x1b[0K", "\x1b[2K\r", "\x1b[2K\x1b[1G", "\x1b[G", "\x1b[K", "\x1b[1K", "\r\x1b[2K",
    "\b", "\b", "\n", "\x1b[A", "\x1b[C", "\x1b[?25l", "⠋", "⠙ 12%", "|", "/", "abc", "a longer one", "下载", "载",
    "é", " ", "   ",
]  # fmt: skip


@given(st.lists(st.sampled_from(FRAMES), max_size=24).map("".join))
def test_to_leave_out_what_is_covered_changes_nothing(text):
    terminal = Terminal()

    assert "".join(map(terminal.feed, text)) + terminal.rest() == shown(text)


@pytest.mark.parametrize(
    "frame",
    [
        "\r{} of 3000", "\r⠋ working {}", "\r下载 {}", "\r\x1b[K⠋ step {}", "\x1b[2K\x1b[1G\x1b[36m⠋\x1b[39m {}",
        "\x1b[?25l\r{}\x1b[K", "\b{:.1}", "\r", "\r\x1b[2K{}",
    ],
)  # fmt: skip
def test_the_frames_that_nobody_sees_are_not_drawn(frame, monkeypatch):
    """50 MB of them took a minute: each was drawn by itself."""
    drawn = []
    monkeypatch.setattr(Terminal, "_write", lambda _terminal, text: drawn.append(text))
    shown("".join(frame.format(str(1000 + number % 1000)) for number in range(5_000)))

    assert len(drawn) < 10


def test_a_character_that_is_taken_for_narrow_is():
    for character in filter(re.compile(module._NARROW).fullmatch, map(chr, range(0x10000))):
        assert module._cells(character) == 1


@given(st.text())
def test_text_without_moves_is_as_it_was(text):
    plain = "".join(
        c for c in text if c not in "\r\b\x1b" and not ("\0" <= c < "\t" or "\r" < c < " ")
    )
    plain = plain.replace("\x7f", "")

    assert shown(plain) == plain


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("\x1b[1mbold\x1b[0m \x1b[38;5;9mred\x1b[m\n", "bold red\n"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        ("\x1b]0;title\x07done\n", "done\n"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("N\bNA\bAM\bME\bE\n", "NAME\n"),
        ("|\b/\b-\b\\\bdone\n", "done\n"),
        ("50%\r100%\r\x1b[Kok\n", "ok\n"),
        ("a longer one\rshort       \n", "short\n"),
        ("下载中 1\r下载中 2\n", "下载中 2\n"),
        ("下载\r\x1b[2C完\n", "下完\n"),
        ("a: 1\nb: 1\n\x1b[2A\x1b[2Ka: 2\n\x1b[2Kb: 2\n", "a: 2\nb: 2\n"),
        ("a\nb\n\x1b[A\x1b[J", "a\n"),
        ("match\x1b[m\x1b[K rest \n", "match rest \n"),
        ("old\n\x1b[H\x1b[2Jnew\n", "new\n"),
        ("\x1b(Bplain\x1b[?25l\x1b[?2004h\n", "plain\n"),
        ("never ended \x1b]0;xx", "never ended "),
        ("tab\there\n", "tab\there\n"),
    ],
)  # fmt: skip
def test_what_is_left_of_an_output(raw, text):
    assert shown(raw).rstrip(" ") == text.rstrip(" ")


def test_what_is_above_a_cursor_that_went_up_far_can_still_be_written_over():
    terminal = Terminal()

    assert terminal.feed("\n" * 150 + "\x1b[999Aone") == ""
    terminal.feed(" two")
    assert terminal.rest().strip("\n") == "one two"


def test_a_line_without_an_end_comes_out_all_the_same():
    assert Terminal().feed("x" * 9_000) == "x" * 9_000


def test_a_title_that_never_ends_costs_no_output():
    terminal = Terminal()

    assert "saved" in terminal.feed("\x1b]0;" + "x" * 9_000 + "\x1b") + terminal.feed(
        "saved\n" * 200
    )


def test_three_thousand_frames_are_one_line_and_the_raw_bytes_are_kept(call, context):
    loop = "for i in range(3001): print(f'\\rDownloading {i}/3000 ' + '=' * 60, end='')"
    script = context.cwd / "bar.py"
    script.write_text(f"{loop}\nprint()\nprint('saved')\n")

    output = call("bash", command="python3 bar.py")

    assert output.content == f"Downloading 3000/3000 {'=' * 60}\nsaved\n"
    [raw] = context.side_files.iterdir()
    assert raw.read_bytes().count(b"\r") == 3001


def test_the_cap_counts_what_is_shown(call, context):
    output = call("bash", command="for i in {1..3000}; do printf '\\rframe %s' $i; echo; done")

    assert "frame 1\n" in output.content
    assert "frame 3000\n" in output.content
    assert "left out here" in output.content
    [raw] = context.side_files.iterdir()
    assert raw.read_bytes().startswith(b"\rframe 1\n\rframe 2\n")
    assert str(raw) in output.content
    assert len(output.content.encode()) <= MAX_BYTES


def test_memory_is_bounded_however_long_a_line_is_written_over(context):
    with Capture(context, is_terminal=True) as capture:
        for _ in range(40):
            capture.feed(b"\rframe" * 10_000)
            assert len(capture._raw) <= 8 * MAX_BYTES
    assert capture.text() == "frame"


def test_what_is_shown_live_is_folded_too(context):
    with Capture(context, is_terminal=True) as capture:
        assert capture.feed(b"\x1b[31m10%\r20%\r\x1b[K30%") == "30%"


@pytest.mark.parametrize("encoding", ["gb18030", "cp1252"])
def test_output_in_another_encoding_is_read_where_that_is_certain(call, context, encoding):
    text = (
        "这是一个配置文件，请不要修改。\n" * 5
        if encoding == "gb18030"
        else "Größe über alles\n" * 5
    )
    Path(context.cwd / "a.txt").write_bytes(text.encode(encoding))

    assert call("bash", command="cat a.txt").content == text
