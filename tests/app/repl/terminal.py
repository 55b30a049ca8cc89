"""The real program in a pseudo-terminal, talking to a scripted server.

    with ScriptedServer([...]) as server:
        terminal = Person(tmp_path, server)
        terminal.says("do it")
        terminal.waits("● ")

Nothing waits for a time: `waits` waits for what is shown, `until` (of tests.app.programs) for what
is in the log.
"""

import os
import re
import signal

import pexpect

from tests.app.programs import Program, until

PROMPT = "leftfold>"  # the blank behind it is drawn by moving the cursor
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")
ESC, UP, DOWN, ALT_UP, ENTER, CTRL_C, CTRL_D = (
    "\x1b", "\x1b[A", "\x1b[B", "\x1b[1;3A", "\r", "\x03", "\x04",
)  # fmt: skip


class Person(Program):
    """A person at a terminal that understands no cursor position requests."""

    def __init__(self, folder, server=None, *arguments, size=(40, 100), **environment):
        super().__init__(folder, server, **{"PROMPT_TOOLKIT_NO_CPR": "1", **environment})
        self.size = size
        self.child = None
        self.starts(*arguments)

    def starts(self, *arguments):
        """Start it (again)."""
        command, *rest = self.command(*arguments)
        self.child = pexpect.spawn(
            command,
            rest,
            cwd=str(self.cwd),
            env=self.environment,
            encoding="utf-8",
            dimensions=self.size,
            timeout=120,
        )

    def waits(self, *patterns):
        """Wait for what is shown; return what came before it."""
        seen = ""
        for pattern in patterns:
            self.child.expect(pattern)
            seen += ESCAPES.sub("", self.child.before + self.child.after)
        return seen

    def presses(self, keys):
        self.child.send(keys)

    def says(self, text):
        self.waits(PROMPT)
        self.child.send(text + "\r")

    def logs_that(self, condition):
        """Wait until *condition* holds for the events in the log."""
        until(lambda: self.has_logged(condition))

    def killed(self):
        os.kill(self.child.pid, signal.SIGKILL)
        self.child.expect(pexpect.EOF)
        self.child.close()

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
