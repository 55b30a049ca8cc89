"""The real program in a pseudo-terminal, talking to a scripted server.

    with ScriptedServer([...]) as server:
        terminal = Person(tmp_path, server)
        terminal.says("do it")
        terminal.waits("● ")

Nothing waits for a time: `waits` waits for what is printed, `shows` for what then stands on the
screen (prompt_toolkit prints only what differs), `until` (of tests.app.programs) for what is in the
log. What `shows` has waited for, `waits` does not see again.
"""

import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pexpect
import pyte

from tests.app.programs import Program, until

PROMPT = "leftfold>"  # the blank behind it is drawn by moving the cursor
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")
ESC, UP, DOWN, LEFT, RIGHT, ALT_UP, ENTER, CTRL_C, CTRL_D = (
    "\x1b", "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[C", "\x1b[1;3A", "\r", "\x03", "\x04",
)  # fmt: skip


class _Emulator:
    """Where pexpect logs what it reads: a terminal, which answers what it is asked by *answer*."""

    def __init__(self, screen, answer):
        screen.write_process_input = answer
        self._stream = pyte.Stream(screen)

    def write(self, text):
        self._stream.feed(text)

    def flush(self):
        pass


class Person(Program):
    """A person at a terminal. It says where the cursor is only if it *answers*.

    prompt_toolkit asks, and shows a status line only below a prompt whose place it knows; a
    terminal that answers must be looked at (`shows`) all the time.
    """

    def __init__(
        self, folder, server=None, *arguments, size=(40, 100), answers=False, **environment
    ):
        silence = {} if answers else {"PROMPT_TOOLKIT_NO_CPR": "1"}
        super().__init__(folder, server, **silence, **environment)
        self.size, self.answers = size, answers
        self.child = None
        self.starts(*arguments)

    def starts(self, *arguments):
        """Start it (again)."""
        self.child = self.at_terminal(*arguments, size=self.size)
        lines, columns = self.size
        self.screen = pyte.Screen(columns, lines)
        answer = self.child.send if self.answers else lambda _: None
        self.child.logfile_read = _Emulator(self.screen, answer)

    def waits(self, *patterns):
        """Wait for what is shown; return what came before it."""
        seen = ""
        for pattern in patterns:
            self.child.expect(pattern)
            seen += ESCAPES.sub("", self.child.before + self.child.after)
        return seen

    def shows(self, *patterns):
        """Wait until all *patterns* stand on the screen at once; return the screen."""
        while not all(re.search(pattern, shown := self.shown()) for pattern in patterns):
            try:
                self.child.expect(r"(?s).+")
            except pexpect.TIMEOUT:
                raise AssertionError(f"{patterns} not on the screen:\n{shown}") from None
        return shown

    def shown(self):
        """What stands on the screen now, as far as it was read."""
        rows, columns = range(self.screen.lines), range(self.screen.columns)
        lines = ("".join(self.screen.buffer[y][x].data for x in columns).rstrip() for y in rows)
        return "\n".join(lines).rstrip()

    def resizes(self, lines, columns):
        """Change the size of the window."""
        self.screen.resize(lines, columns)
        self.child.setwinsize(lines, columns)

    def presses(self, keys):
        self.child.send(keys)

    def says(self, text):
        self.waits(PROMPT)
        self.child.send(text + "\r")

    def pastes(self, text):
        """Say what is too long to be typed: each key costs a drawing of the prompt."""
        self.says(f"\x1b[200~{text}\x1b[201~")

    def logs_that(self, condition):
        """Wait until *condition* holds for the events in the log."""
        until(lambda: self.has_logged(condition))

    def killed(self):
        """Kill it; the tools that it leaves behind, too, when it is dead."""
        tools = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children")
        left_behind = tools.read_text().split() if tools.exists() else []
        os.kill(self.child.pid, signal.SIGKILL)
        self.child.expect(pexpect.EOF)
        self.child.close()
        for pid in left_behind:
            with suppress(ProcessLookupError):
                os.killpg(int(pid), signal.SIGKILL)

    def ended(self):
        self.child.expect(pexpect.EOF)
        shown = ESCAPES.sub("", self.child.before)
        self.child.close()
        return self.child.exitstatus, shown


def has(topic, **state):
    """Return the condition that an event of *topic* has *state*."""

    def condition(events):
        return any(
            event["topic"] == topic and state.items() <= event["state"].items() for event in events
        )

    return condition


def ended_as(outcome):
    return has("TurnEnded", outcome=outcome)
