"""The first prompt stands before what works behind it is there."""

import asyncio
import os
import signal
import sys
import termios

import pexpect
import pytest
from prompt_toolkit.completion import CompleteEvent, Completion, DummyCompleter
from prompt_toolkit.document import Document

from app.repl.first_prompt import LaterCompleter
from tests.app.repl.terminal import PROMPT, Person

STANDING = """
import asyncio
from app.repl.first_prompt import FirstPrompt
from app.settings import run_settings

async def stand():
    async with FirstPrompt(run_settings(offline=True)).standing(*{greeting}):
        await asyncio.sleep(60)  # what works behind it is never there

asyncio.run(stand())
"""


@pytest.mark.parametrize("greeting", [["welcome"], []])
def test_a_signal_meanwhile_ends_the_program_and_leaves_the_terminal_as_it_was(tmp_path, greeting):
    child = pexpect.spawn(
        sys.executable,
        ["-c", STANDING.format(greeting=greeting)],
        env=os.environ | {"LEFTFOLD_HOME": str(tmp_path), "TERM": "xterm-256color"},
        cwd=tmp_path,
        timeout=60,
    )
    before = termios.tcgetattr(child.child_fd)[3]
    child.expect("leftfold>")
    assert (b"welcome" in child.before) == bool(greeting)
    assert termios.tcgetattr(child.child_fd)[3] != before  # it is raw

    child.kill(signal.SIGTERM)
    child.expect(pexpect.EOF)
    after = termios.tcgetattr(child.child_fd)[3]
    child.close()

    assert child.exitstatus == 143
    assert after & termios.ECHO
    assert after & termios.ICANON


def test_what_was_said_before_stands_above_what_is_typed_however_early(tmp_path):
    person = Person(tmp_path, None, "--offline")
    person.says("one")
    person.says("q")
    person.ended()

    person.is_cold = True
    person.starts("--offline", "-c")
    person.child.delaybeforesend = None
    person.says("q")  # at once: the prompt is there, the past is not
    person.waits("› one", "Restored 2 messages", f"{PROMPT}.*q")
    assert person.ended()[0] == 0


def test_tab_waits_for_what_it_can_offer():
    class Names(DummyCompleter):
        def get_completions(self, document, complete_event):
            return [Completion("name")]

    async def offered():
        later, event = LaterCompleter(), CompleteEvent()
        assert list(later.get_completions(Document(), event)) == []
        asyncio.get_running_loop().call_soon(later.become, Names())
        return [one.text async for one in later.get_completions_async(Document(), event)]

    assert asyncio.run(offered()) == ["name"]
