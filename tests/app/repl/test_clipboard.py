"""`/copy`: what was said, and nothing else, on the clipboard."""

import os
import re
from base64 import b64decode, b64encode

import pytest

from app.repl import clipboard
from tests import builders as b
from tests.app.programs import Program
from tests.app.repl.terminal import Person
from tests.server import ScriptedServer, reply

ANSWER = """\
Do this:

```sh
cat <<'END'
\ta  b
END
```

- or that:

  ```
  second
  ```

      third
"""
FIRST = "cat <<'END'\n\ta  b\nEND"
OSC = re.compile(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")


def decoded(printed):
    return [b64decode(found).decode() for found in OSC.findall(printed)]


def test_the_code_blocks_of_an_answer_are_as_they_were_said():
    assert clipboard.code_blocks(ANSWER) == [FIRST, "second", "third"]
    assert clipboard.code_blocks("```\n\n  a\n\n```") == ["\n  a\n"]


def test_the_last_answer_is_the_last_one_with_words():
    conversation = b.conversation(b.user("go"))
    assert clipboard.last_answer(conversation) == ""
    conversation = b.conversation(
        b.user("go"), b.assistant(b.text("One."), b.text("Two.")), b.user("on"),
        b.assistant(b.tool_use("t1")),
    )  # fmt: skip
    assert clipboard.last_answer(conversation) == "One.\n\nTwo."
    conversation = b.conversation(b.user("go"), b.assistant(b.text("ls\x1b[201~\rrm")))
    assert clipboard.last_answer(conversation) == "ls␛[201~␍rm"


def test_what_would_act_when_it_is_pasted_is_visible():
    """The end of a bracketed paste, for one, in an answer or its code."""
    assert clipboard.code_blocks("```\nls\x1b[201~\rrm\n```") == ["ls␛[201~␍rm"]


@pytest.mark.parametrize("size", [0, 1, 699, 700, 701, 50_000])
def test_tmux_and_screen_let_it_through(size):
    said = "é" * size
    told = clipboard.sequence(said, {})
    assert decoded(told) == [said]

    in_tmux = clipboard.sequence(said, {"TMUX": "/tmp/tmux-0/default,1,0", "STY": "1.x"})
    plain, _, passed = in_tmux.partition("\x1bPtmux;")
    assert plain == told
    assert passed == told.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    in_screen = clipboard.sequence(said, {"STY": "1.pts-0"})
    pieces = re.findall(r"\x1bP(.*?)\x1b\\", in_screen, re.DOTALL)
    assert "".join(pieces) == told
    assert max(map(len, pieces)) < 768


def test_at_a_terminal_the_code_goes_through_it(tmp_path):
    with ScriptedServer([reply(ANSWER)]) as server:
        person = Person(tmp_path, server, TMUX="", STY="", PATH="/nowhere")
        person.says("/copy")
        person.waits("no answer to copy yet")
        person.says("how?")
        person.waits("third")
        person.says("/copy 1")
        sent = person.waits(r"Sent code block 1 of 3 .*: 3 lines, 21 characters\.")
        assert b64encode(FIRST.encode()).decode() in sent
        person.says("/copy 4")
        person.waits("1 to 3, not '4'")
        person.says("/copy")
        sent = person.waits("Sent the last answer")
        assert b64encode(ANSWER.strip("\n").encode()).decode() in sent
        person.says("q")
        assert person.ended()[0] == 0


def test_the_platforms_program_is_used_where_there_is_one(tmp_path):
    """Also for what is too long for a terminal."""
    answer = "word " * 20_000
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "xclip"
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/copied\n")
    program.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    with ScriptedServer([reply(answer)]) as server:
        person = Program(tmp_path, server, DISPLAY=":9", PATH=path, WAYLAND_DISPLAY="")
        done = person.run(stdin="hello\n/copy\n")

    assert f"Copied the last answer: 1 lines, {len(answer):,} characters." in done.out
    assert (tmp_path / "copied").read_text() == answer
    assert not OSC.search(done.out)


def test_without_a_terminal_or_a_program_it_says_so(tmp_path):
    with ScriptedServer([reply("Hello.")]) as server:
        done = Program(tmp_path, server, PATH="/nowhere").run(stdin="hello\n/copy\n")

    assert "Not copied: there is neither a terminal" in done.out
    assert not OSC.search(done.out)


def test_what_is_too_long_for_a_terminal_is_not_sent(tmp_path):
    with ScriptedServer([reply("é" * 37_500)]) as server:
        person = Person(tmp_path, server, PATH="/nowhere")
        person.says("hello")
        person.says("/copy")
        seen = person.waits(r"Not copied: 1 lines, 37,500 characters .*74,994 bytes")
        assert "]52;" not in seen
