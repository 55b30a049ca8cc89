"""The first moments: Ctrl+C at any of them ends the program without a word."""

import subprocess
import sys

import pytest

from tests.app.programs import MAIN, PATIENCE, ROOT, Program

_AT_AN_IMPORT = f"""\
import os, runpy, signal, sys
name, sys.argv = sys.argv[1], [{str(MAIN)!r}, *sys.argv[2:]]
def hook(event, arguments):
    global name
    if event == "import" and arguments[0] == name:
        name = None
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass  # a handler in Python runs between two steps
sys.addaudithook(hook)
runpy.run_path({str(MAIN)!r}, run_name="__main__")
"""


@pytest.mark.parametrize(
    "module",
    ["click", "app.repl.loop", "prompt_toolkit"],
)
def test_ctrl_c_while_something_is_imported_shows_no_traceback(tmp_path, module):
    program = Program(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _AT_AN_IMPORT, module, "--offline"],
        cwd=ROOT,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stderr) == (130, "")
