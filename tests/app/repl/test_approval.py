"""A person is asked before a tool acts: what is shown, and when an answer counts."""

import asyncio
import io
from pathlib import Path
from typing import NamedTuple

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from app.approvers import DECLINED
from app.ports import Approval, Proposal
from app.repl.approval import AskingApprover
from app.view.plain import cells
from domain.messages import ToolUseBlock
from tests import builders as b


class Changing(NamedTuple):
    path: str
    target: Path
    before: str | None
    after: str


def call(name="bash", **arguments):
    return ToolUseBlock(b.tool_use("toolu_1", name, **arguments))


class Asked:
    """An approver that gives *answers*, one after the other; what was on the screen at each."""

    def __init__(self, *answers, why="", cwd="/work", width=80, height=24):
        self.answers, self.why = list(answers), why
        self.screen = io.StringIO()
        self.seen, self.words = [], []
        self.console = Console(file=self.screen, width=width, height=height)
        self.approver = AskingApprover(
            self.console, cwd=Path(cwd), ask=self._ask, ask_why=self._ask_why
        )

    async def _ask(self, words, explain):
        if self.answers[0] == "other":
            explain()
            explain()
            self.answers.pop(0)
        self.seen.append(self.screen.getvalue())
        self.words.append(words)
        return self.answers.pop(0)

    async def _ask_why(self):
        return self.why

    def about(self, a_call, change=None):
        return asyncio.run(self.approver.decide(Proposal(a_call, "it", change)))


@pytest.mark.parametrize(
    ("answer", "approval"),
    [
        ("yes", Approval("yes")),
        ("always", Approval("always")),
        ("command", Approval("always", command="ls")),
        ("no", Approval("no", reason=DECLINED)),
        ("anything", Approval("no", reason=DECLINED)),
    ],
)
def test_what_the_person_says_is_what_was_decided(answer, approval):
    assert Asked(answer).about(call(command="ls")) == approval


def test_a_reason_is_asked_for_and_told():
    told = Asked("reason", why="too early ").about(call(command="ls"))

    assert told.decision == "no"
    assert told.reason.endswith("The user says: too early")


def test_only_a_command_can_be_allowed_by_itself():
    asked = Asked("no")
    asked.about(call("write", content="x"))

    assert "c" not in asked.words[0]
    assert "this [c]ommand" not in asked.seen[0]


def test_stopping_at_the_question_stops_the_turn():
    with pytest.raises(asyncio.CancelledError):
        Asked("stop").about(call())


# -- all of it is seen before an answer counts -----------------------------------------------------


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("echo hi", "  $ echo hi\n"),
        ("x" * 298 + "yz", "yz\n"),
        ("echo hi;" + " " * 24_100 + "rm -rf x", "  $ echo hi;⟨24,100 blanks⟩rm -rf x\n"),
        ("echo hi\n" + "\n" * 4_000 + "rm -rf x", "  $ echo hi\n    ⟨4,000 blank lines⟩\n    rm -rf x\n"),
        ("echo 1\n" * 60 + "rm -rf y\n" + "echo 2\n" * 60, "    rm -rf y\n"),
        ("echo \u202eevil\u200b\U000e0061\u00a0\x1b[2J", "  $ echo \\u202eevil\\u200b\\U000e0061\\u00a0␛[2J\n"),
        ("echo a\rrm x", "  $ echo a␍rm x\n"),
        ("echo a  ", "  $ echo a··\n"),
    ],
)  # fmt: skip
def test_a_command_is_shown_whole(command, shown):
    asked = Asked("yes")

    assert asked.about(call(command=command)) == Approval("yes")
    assert shown in asked.seen[0]


@pytest.mark.parametrize("word", ["word", "wörd", "字"])
def test_a_line_that_is_too_wide_is_broken_and_says_so(word):
    command = " ".join(f"{word}{number}" for number in range(30))
    asked = Asked("yes", width=40)
    asked.about(call(command=command))
    lines = [line for line in asked.seen[0].split("\n") if line.startswith(("  $", "  ↪"))]

    assert len(lines) > 2
    assert all(cells(line) < 40 for line in lines)
    assert "".join(line[4:] for line in lines) == command


def test_every_other_argument_is_shown_too():
    asked = Asked("yes")
    asked.about(call(command="ls", timeout=3600, extra={"a": "\u200b"}, more="a\nrm x"))

    assert (
        '  $ ls\n  timeout: 3600\n  extra: {"a": "\\u200b"}\n  more: a\n    rm x\n' in asked.seen[0]
    )


def test_of_a_change_every_argument_is_shown_that_the_change_does_not_show():
    asked = Asked("no")
    change = Changing("a", Path("/work/a"), None, "x\n")
    asked.about(call("write", path="a", content="x\n", mode="4755"), change)

    assert asked.seen[0].startswith("\nAllow write?\n  a\n  a new file\n  mode: 4755\n  1 +x\n")


ALWAYS_ANSWERS = {
    "y": "yes", "yes": "yes", "a": "always", "always": "always",
    "n": "no", "no": "no", "r": "reason", "reason": "reason",
}  # fmt: skip


def test_these_words_are_answers_and_no_others():
    command, change, long = Asked("no"), Asked("no"), Asked("no")
    command.about(call(command="ls"))
    change.about(call("write"), Changing("a", Path("/work/a"), None, "x\n"))
    long.about(call("write"), Changing("a", Path("/work/a"), None, "x\n" * 300))

    assert command.words == [{**ALWAYS_ANSWERS, "c": "command", "command": "command"}]
    assert change.words == [ALWAYS_ANSWERS]
    assert long.words == [{**ALWAYS_ANSWERS, "s": "all", "show": "all"}]


def test_what_a_terminal_has_no_character_for_is_shown_as_its_code():
    """A question mark in its place could be one that is meant."""
    asked = Asked("yes")
    with io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict") as file:
        asked.console.file = file
        asked.about(call(command="rm é"))
        file.flush()

        assert b"$ rm \\xe9\n" in file.buffer.getvalue()


def test_the_tools_name_is_shown_as_it_is():
    asked = Asked("no")
    asked.about(call("bash\u202e\x1b[2J", command="ls"))

    assert "Allow bash\\u202e␛[2J?\n" in asked.seen[0]


def test_what_went_off_the_screen_is_said():
    asked = Asked("yes", height=24)
    asked.about(call(command="\n".join(f"echo {number}" for number in range(71))))

    assert "all of it, 72 lines: scroll up" in asked.seen[0]


@pytest.mark.parametrize(("lines", "is_said"), [(21, False), (22, True)])
def test_what_just_fits_the_screen_has_not_gone(lines, is_said):
    """With the line before it and the choices: 24 rows."""
    asked = Asked("yes", height=24)
    asked.about(call(command="\n".join(["true"] * lines)))

    assert ("scroll up" in asked.seen[0]) == is_said


@pytest.mark.parametrize(("height", "shown"), [(24, 24), (60, 48)])
def test_of_a_long_file_as_much_is_shown_at_once_as_the_screen_has_room_for(height, shown):
    asked = Asked("no", height=height)
    asked.about(call("write"), Changing("a", Path("/work/a"), None, "x\n" * 300))

    assert asked.seen[0].count("+x\n") == shown
    assert f"… +{300 - shown} lines" in asked.seen[0]


def test_of_a_long_file_nothing_counts_as_a_yes_before_all_of_it_was_shown():
    text = "".join(f"line {number}\n" for number in range(1, 301))
    for yes, decision in (("yes", "yes"), ("always", "always"), ("command", "no"), ("x", "no")):
        asked = Asked(yes, yes)

        assert (
            asked.about(call("write"), Changing("a", Path("/work/a"), None, text)).decision
            == decision
        )
        first, second = asked.seen
        assert "[s]how all of it" in first
        assert "line 151\n" not in first
        assert "line 151\n" in second
        assert "[s]how" not in second.removeprefix(first)


def test_a_long_file_can_be_declined_unread_and_shown_by_a_key():
    text = "".join(f"line {number}\n" for number in range(1, 301))
    change = Changing("a", Path("/work/a"), None, text)
    asked = Asked("all", "no")

    assert Asked("no").about(call("write"), change).decision == "no"
    assert asked.about(call("write"), change).decision == "no"
    assert asked.words[0]["s"] == "all"
    assert "line 151\n" in asked.seen[1]
    assert all(asked.seen[1].count(f"+line {number}\n") == 1 for number in range(1, 301))


def test_the_question_is_put_again_when_others_wrote_on_the_screen():
    asked = Asked("again", "no")
    asked.about(call(command="rm x"))

    assert asked.seen[1].count("$ rm x\n") == 2


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_stopping_at_the_reason_stops_the_turn(key):
    asked = Asked("reason")
    with create_pipe_input() as source, create_app_session(source, DummyOutput()):
        source.send_text(key)
        asked.approver = AskingApprover(asked.console, cwd=Path("/work"), ask=asked._ask)
        with pytest.raises(asyncio.CancelledError):
            asked.about(call(command="ls"))


@pytest.mark.parametrize("keys", ["\x1b", "half a rea\x1b"])
def test_esc_at_the_reason_goes_back_to_the_question(keys):
    asked = Asked("reason", "yes")
    with create_pipe_input() as source, create_app_session(source, DummyOutput()):
        source.send_text(keys)
        asked.approver = AskingApprover(asked.console, cwd=Path("/work"), ask=asked._ask)

        assert asked.about(call(command="ls")) == Approval("yes")

    assert asked.seen[1].count("[y]es") == 2
    assert asked.seen[1].count("$ ls\n") == 1


def test_what_is_typed_and_no_answer_is_said_once_with_what_is_one():
    asked = Asked("other", "no")
    asked.about(call(command="rm x"))

    assert asked.seen[0].count("is no answer") == 1
    assert asked.seen[0].count("[y]es") == 2
    assert asked.seen[0].endswith("[r]eason ")


@pytest.mark.parametrize(("width", "end"), [(80, "[r]eason always\n"), (76, "[r]eason \nalways\n")])
def test_an_answer_is_shown_in_one_piece(width, end):
    asked = Asked("always", width=width)
    asked.about(call(command="ls"))

    assert asked.screen.getvalue().endswith(end)


def test_what_is_no_answer_of_a_person_is_not_shown_as_one():
    asked = Asked("again", "stop")
    with pytest.raises(asyncio.CancelledError):
        asked.about(call(command="ls"))

    assert "again" not in asked.screen.getvalue()


# -- files -----------------------------------------------------------------------------------------


def shown_of(path, target, before, after, cwd="/work"):
    asked = Asked("no", cwd=cwd)
    asked.about(call("edit", path=path, edits="…"), Changing(path, Path(target), before, after))
    return asked.seen[0]


def test_a_change_is_shown_with_its_place_and_what_is_around_it():
    before = "".join(f"{number}\n" for number in range(1, 21))
    shown = shown_of("a.txt", "/work/a.txt", before, before.replace("10\n", "ten\n"))

    assert shown.startswith(
        "\nAllow edit?\n  a.txt\n   7  7\n   8  8\n   9  9\n  10 -10\n  10 +ten\n  11  11\n"
    )
    assert "  12  12\n  13  13\n[y]es" in shown


def test_of_a_long_file_what_changes_is_shown_and_not_all_of_it():
    lines = [f"{number}\n" for number in range(1, 9001)]
    changed = ["one\n", *lines[1:-1], "last\n"]
    shown = shown_of("a.txt", "/work/a.txt", "".join(lines), "".join(changed))

    assert "+one\n" in shown
    assert "9000 +last\n" in shown
    assert "[s]how all" not in shown


@pytest.mark.parametrize(
    ("path", "target", "named"),
    [
        ("link", "/etc/passwd", ["through a link: the file is /etc/passwd", "outside the directory"]),
        ("link", "/work/real", ["through a link: the file is /work/real"]),
        ("/etc/passwd", "/etc/passwd", ["outside the directory /work"]),
        ("../x", "/x", ["outside the directory /work"]),
        ("../work2/x", "/work2/x", ["outside the directory /work"]),
        ("./a.txt", "/work/a.txt", []),
        ("link", "/work/\u202ea\n\x1b[2J", ["through a link: the file is /work/\\u202ea␊␛[2J\n"]),
    ],
)  # fmt: skip
def test_the_file_that_is_really_written_is_named(path, target, named):
    shown = shown_of(path, target, "a\n", "b\n")

    assert all(words in shown for words in named)
    assert ("through" in shown, "outside" in shown) == (
        any("through" in words for words in named),
        any("outside" in words for words in named),
    )


def test_a_directory_that_is_a_link_is_where_it_leads(tmp_path):
    (real := tmp_path / "real").mkdir()
    (link := tmp_path / "link").symlink_to(real)
    shown = shown_of("a", str(real / "a"), "a\n", "b\n", cwd=link)

    assert f"the file is {real}/a" in shown.replace("\n↪ ", "")
    assert "outside" not in shown


def test_a_path_below_the_home_is_no_link(tmp_path):
    shown = shown_of("~/a", str(tmp_path / "a"), "a\n", "b\n", cwd=tmp_path)

    assert "link" not in shown
    assert "outside" not in shown


def test_the_directory_is_shown_as_it_is():
    shown = shown_of("/x", "/x", "a\n", "b\n", cwd="/work\u202e\x1b[2J")

    assert "outside the directory /work\\u202e␛[2J\n" in shown


def test_the_end_of_a_long_path_is_shown():
    path = "/".join(["deep"] * 60) + "/\u200bevil.sh"
    shown = shown_of(path, f"/work/{path}", None, "x\n")

    assert "\\u200bevil.sh\n" in shown.replace("\n  ↪ ", "").replace("\n↪ ", "")


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        (None, "one\n\ntwo\n", "  a new file\n  1 +one\n  2 +\n  3 +two\n"),
        (None, "one", "  1 +one⟨no line feed at the end⟩\n"),
        ("one\n", "one", "  1 -one\n  1 +one⟨no line feed at the end⟩\n"),
        ("one\n", "one\r\n", "  1 -one\n  1 +one␍\n"),
        ("\tone\n", "    one\n", "  1 -⇥   one\n  1 +    one\n"),
        ("one\n", "one \n", "  1 -one\n  1 +one·\n"),
        (None, "", "a new file, empty"),
        ("a\n", "", "The file will be empty."),
        (None, "x" + " " * 200 + "evil\n", "  1 +x⟨200 blanks⟩evil\n"),
        (None, "x\n" + "\n" * 100 + "evil\n", "    2 +⟨100 blank lines⟩\n  102 +evil\n"),
        (None, "···\n" * 9, "  9 +···\n"),
        ("a\n" * 50_000, "b\n" * 50_000, "-a\n"),
    ],
)
def test_nothing_that_a_write_does_is_unseen(before, after, rows):
    assert rows in shown_of("a", "/work/a", before, after)
