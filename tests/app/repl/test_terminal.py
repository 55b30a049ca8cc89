"""The real program in a pseudo-terminal, with the offline model."""

import os
import re
import signal
import time

import pexpect
import pytest

from tests.app.programs import Program

PROMPT = "leftfold>"  # the blank behind it is drawn by moving the cursor
QUESTION = r"\[n\]o "
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class Terminal:
    """A person at a terminal that understands nothing (no cursor position requests)."""

    def __init__(self, cwd, *arguments, **environment):
        environment = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", **environment}
        program = Program(cwd.parent, **environment)
        self.child = program.at_terminal("--offline", *arguments, size=(40, 100))

    def waits(self, *patterns):
        """Wait for what is shown; return what came before it."""
        seen = ""
        for pattern in patterns:
            self.child.expect(pattern)
            seen += ESCAPES.sub("", self.child.before + self.child.after)
        return seen

    def says(self, text):
        self.waits(PROMPT)
        self.child.send(text + "\r")

    def ended(self):
        self.child.expect(pexpect.EOF)
        shown = ESCAPES.sub("", self.child.before)
        self.child.close()
        return self.child.exitstatus, shown


@pytest.fixture
def here(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "one.txt").write_text("first\n")
    return folder


def logs(home):
    return [path.read_text() for path in sorted((home / "conversations").rglob("*.jsonl"))]


def test_a_conversation_and_its_resumption(here, home):
    terminal = Terminal(here)
    terminal.says("列出当前目录的文件")
    terminal.waits(QUESTION)
    terminal.child.send("y")
    seen = terminal.waits("● ", "one.txt", "one.txt")
    assert "$ ls" in seen
    terminal.says("q")
    code, shown = terminal.ended()
    assert code == 0
    assert re.search(r"To resume: leftfold -r [0-9a-f-]{36}", shown)

    terminal = Terminal(here, "-c")
    terminal.waits("Restored 4 messages", PROMPT)
    terminal.child.send("刚才我让你做什么了\r")
    terminal.waits("从我收到的消息来看", "列出当前目录的文件")
    terminal.waits(PROMPT)
    terminal.child.send("\x04")
    assert terminal.ended()[0] == 0
    assert len(logs(home)) == 1


def test_no_is_told_to_the_model_and_nothing_runs(here):
    terminal = Terminal(here)
    terminal.says("run: touch ran")
    terminal.waits(QUESTION)
    terminal.child.send("no\r")
    terminal.waits("declined")
    terminal.says("q")

    assert terminal.ended()[0] == 0
    assert not (here / "ran").exists()


def test_ctrl_c_stops_a_tool_and_its_children(here, home):
    terminal = Terminal(here, "--yes")
    terminal.says("run: echo $((6*7000)); sleep 100; touch survived")
    terminal.waits("  42000")
    terminal.child.sendintr()
    terminal.waits("Interrupted.")
    terminal.says("what did I ask you?")
    terminal.waits("sleep 100")
    terminal.says("q")

    assert terminal.ended()[0] == 0
    assert not (here / "survived").exists()


def test_ctrl_c_at_the_question_stops_the_turn(here):
    terminal = Terminal(here)
    terminal.says("run: touch ran")
    terminal.waits(QUESTION)
    terminal.child.send("\x03")
    terminal.waits("Interrupted.", PROMPT)
    terminal.child.send("\x03\x03")

    assert terminal.ended()[0] == 0
    assert not (here / "ran").exists()


def test_a_paste_of_many_lines_is_one_prompt(here, home):
    terminal = Terminal(here)
    terminal.waits(PROMPT)
    terminal.child.send("\x1b[200~one\ntwo\nthree\x1b[201~")
    terminal.waits("three")
    terminal.child.send("\r")
    terminal.waits("offline model: a few")
    terminal.says("q")
    terminal.ended()

    [log] = logs(home)
    assert log.count('"one\\ntwo\\nthree"') == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_being_ended_during_a_turn_leaves_a_whole_log(here, home, number, code):
    terminal = Terminal(here, "--yes")
    terminal.says("run: echo $((6*7000)); sleep 100")
    terminal.waits("  42000")
    os.kill(terminal.child.pid, number)

    assert terminal.ended()[0] == code
    assert '"interrupted"' in logs(home)[0]


def test_the_terminal_going_away_leaves_a_whole_log(here, home):
    terminal = Terminal(here, "--yes")
    terminal.says("run: echo $((6*7000)); sleep 100")
    terminal.waits("  42000")
    terminal.child.close(force=False)
    for _ in range(100):
        if '"interrupted"' in logs(home)[0]:
            break
        time.sleep(0.1)

    assert '"interrupted"' in logs(home)[0]


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"LC_ALL": "C"}, {"TERM": "dumb"}])
def test_poor_terminals_get_everything(here, environment):
    terminal = Terminal(here, "--yes", **environment)
    terminal.says("run: echo h\u00e9 你好")
    terminal.waits("你好", "你好", "你好")
    terminal.says("q")

    assert terminal.ended()[0] == 0
