"""Random keys at every state of the program: whatever they are, the prompt comes back."""

import random
import signal

import pexpect
import pytest

from tests.app.repl.terminal import (
    ALT_UP,
    CTRL_C,
    CTRL_D,
    DOWN,
    ENTER,
    ESC,
    LEFT,
    PROMPT,
    RIGHT,
    UP,
    Person,
)  # fmt: skip
from tests.levels import at_level
from tests.server import ScriptedServer, by_rules

SEQUENCES, MOST_KEYS, MOST_TRIES = at_level(quick=4, whole=12), 14, 8
CTRL = {name: chr(ord(name) - 64) for name in "AEKLORSUWZ"}
LONG_PASTE = "\x1b[200~" + "line\n" * 30 + "\x1b[201~"
KEYS = [
    ESC, ENTER, ENTER, UP, DOWN, LEFT, RIGHT, ALT_UP, "\t", "\x7f", CTRL_C, CTRL_D, *CTRL.values(),
    "\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~", "\x1b[3~", "\x18\x05", "\x1b\r", "\x00", "\x1bx",
    "n", "r", "q", "x", " ", "/", "@", "你", "👋", "\x1b[<0;1;1M", "\x1b[5;5R",
    "\x1b[200~one\ntwo\x1b[201~", LONG_PASTE,
    "\x1b[200~x\x1b[201~\r!touch unasked\r\x1b[201~",
    "list the files here\r", "run: touch unasked\r", "run: sleep 0.1; touch unasked\r",
    "write unasked: text\r", "/tree\r", "/log follow\r", "/resume\r", "/fork\r", "/new\r",
    "/help\r", "/stats\r", "/compact\r", "/name Anna\r", "/label here\r", "/clear\r",
]  # fmt: skip
"""No key among them says yes, always or always-this-command, and none runs a command of ours."""
WRONG = ("Traceback", "nexpected error", "Unhandled exception", "Press ENTER")


class Masher(Person):
    """Presses anything; keeps all that was printed."""

    transcript = ""

    def mashes(self, keys):
        """Press *keys*, and then what leads back to the prompt; start again if that has left."""
        for key in keys:
            self.presses(key)
        self.presses(ESC)
        for _ in range(MOST_TRIES):
            self.presses(CTRL_C)
            found = self.child.expect(
                ["again leaves|再按", pexpect.EOF, pexpect.TIMEOUT], timeout=4
            )
            self.transcript += str(self.child.before)
            if found == 0:
                return
            if found == 1:
                self.child.wait()
                was_leaving = self.child.signalstatus == signal.SIGINT  # Ctrl+C in its last moment
                assert was_leaving or self.child.exitstatus in (0, 130), keys
                self.starts("-c")
                self.waits(PROMPT)
                return
        raise AssertionError(f"the prompt has not come back after {keys!r}:\n{self.shown()}")


@pytest.mark.parametrize(
    ("seed", "environment"),
    [(1, {}), (2, {"TERM": "dumb"}), (3, {"LC_ALL": "zh_CN.UTF-8"})],
)
def test_whatever_is_typed_the_prompt_comes_back_and_nothing_unasked_runs(
    tmp_path, seed, environment
):
    dice = random.Random(seed)
    with ScriptedServer(by_rules for _ in range(1000)) as server:
        size = (24, 60) if seed == 3 else (30, 100)
        person = Masher(tmp_path, server, size=size, EDITOR="true", **environment)
        person.waits(PROMPT)
        for _ in range(SEQUENCES):
            person.mashes(dice.choices(KEYS, k=dice.randint(1, MOST_KEYS)))
        person.presses(CTRL_C * 3)
        person.child.close(force=True)

    assert [word for word in WRONG if word in person.transcript] == []
    assert not (person.cwd / "unasked").exists()
    if person.logs():
        assert person.run("verify").code == 0
