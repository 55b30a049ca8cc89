"""Pictures of a real session, for the README: ``make screenshots``.

The real program runs in tmux, which is the terminal; rich turns what is on its screen into SVG.
The model is scripted, so that the pictures are the same every time, but for times and ids.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.app.programs import Program, until
from tests.server import ScriptedServer, call, reply

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
COLUMNS, ROWS = 92, 26

CODE = '''def greeting(name: str) -> str:
    """Return what to say to somebody."""
    return "Hello, " + nmae
'''
ANSWER = """\
Fixed: `greeting` read a name that does not exist.

| where | before | after |
|---|---|---|
| `hello.py`, line 3 | `nmae` | `name` |

The test passes now.
"""


class Tmux:
    """A terminal of its own, by a tmux server of its own."""

    def __init__(self, program, *arguments):
        self.socket = f"leftfold-{os.getpid()}"
        keep = ("PATH", "LANG", "LC_ALL")
        environment = {name: os.environ[name] for name in keep if name in os.environ}
        environment |= {
            k: v for k, v in program.environment.items() if k not in ("TERM", "NO_COLOR")
        }
        command = ["env", "-i", *(f"{k}={v}" for k, v in environment.items())]
        command += ["TERM=tmux-256color", *program.command(*arguments)]
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        self.tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(program.cwd), *command)
        self.tmux("set", "-g", "status", "off")

    def tmux(self, *arguments):
        done = subprocess.run(
            ["tmux", "-L", self.socket, "-u", *arguments], check=True, capture_output=True
        )
        return done.stdout.decode()

    def types(self, text, *keys):
        self.tmux("send-keys", "-l", text)
        time.sleep(0.3)  # a person's pause: Enter at once would be a paste
        for key in keys:
            self.tmux("send-keys", key)

    def waits(self, pattern):
        until(lambda: re.search(pattern, self.tmux("capture-pane", "-p")))

    def picture(self, name, title):
        """Write what is on the screen now."""
        time.sleep(0.5)
        screen = self.tmux("capture-pane", "-e", "-p").rstrip("\n")
        console = Console(
            record=True,
            width=COLUMNS,
            file=StringIO(),
            force_terminal=True,
            color_system="truecolor",
        )
        console.print(Text.from_ansi(screen), soft_wrap=True)
        console.save_svg(str(FOLDER / f"{name}.svg"), title=title, unique_id=name)

    def ends(self):
        self.tmux("kill-server")


def main():
    """Make all pictures."""
    if shutil.which("tmux") is None:
        sys.exit("make screenshots needs tmux")
    FOLDER.mkdir(parents=True, exist_ok=True)
    edit = {"old_text": "nmae", "new_text": "name"}
    with tempfile.TemporaryDirectory() as folder:
        steps = [
            reply("Let me look.", call("read", path="hello.py")),
            reply(call("edit", path="hello.py", edits=[edit])),
            reply(ANSWER),
            reply(call("bash", command="python3 -c 'import time; time.sleep(600)'")),
            reply("- `greeting` says the name that it is given."),
        ]
        with ScriptedServer(steps) as server:
            program = Program(Path(folder), server, MODEL_ID="claude-sonnet-4-5")
            program.cwd = program.cwd.rename(Path(folder) / "hello")
            (program.cwd / "hello.py").write_text(CODE)
            terminal = Tmux(program)
            try:
                session(terminal)
            finally:
                terminal.ends()


def session(terminal):
    """Play a session, and take the pictures in it."""
    terminal.waits("leftfold>")
    terminal.types("/t")
    terminal.waits("/thinking")
    terminal.picture("completion", "leftfold: commands and what they take")
    terminal.types("", "C-u")
    terminal.types("why does @hello.py fail? fix it", "Enter")
    terminal.waits("eason")
    terminal.picture("approval", "leftfold: an edit, before it is made")
    terminal.types("y")
    terminal.waits("test passes")
    terminal.waits(r"(?m)leftfold>\s*$")
    terminal.waits(r"tokens \(")
    terminal.picture("answer", "leftfold: an answer")
    terminal.types("/label fixed", "Enter")
    terminal.waits("is labelled")
    terminal.types("run the long test", "Enter")
    terminal.waits(r"(?s)Allow bash.*python3.*eason")
    terminal.types("y")
    terminal.waits("Esc stops")
    terminal.types("and then write a changelog", "Enter")
    terminal.types("with a date")
    terminal.waits("» with a date")
    terminal.picture("queue", "leftfold: typing while the agent works")
    terminal.types("", "Escape")
    terminal.waits("Interrupted")
    terminal.types("", "C-c")
    terminal.types("/tree fixed", "Enter")
    terminal.waits("You are here")
    terminal.types("write a line for the changelog", "Enter")
    terminal.waits("that it is given")
    terminal.waits(r"(?m)leftfold>\s*$")
    terminal.types("/tree", "Enter")
    terminal.waits("Esc leaves")
    terminal.types("", *["Up"] * 4, "Left")
    terminal.waits("2 folded")
    terminal.picture("tree", "leftfold: the tree of a conversation")


if __name__ == "__main__":
    main()
