"""The tour of the READMEs, taken again: the same events, the same tree, the same words."""

import re
from pathlib import Path

import pytest

from tests.app.programs import topics
from tests.app.repl.terminal import Person

ROOT = Path(__file__).parents[2]
NUMBERED = re.compile(r"^ +\d+  [\d:]{8}  (\w+)", re.MULTILINE)
FOUND = re.compile(r"(@\d+)  [\d-]{10} [\d:]{5}  (.*)")
ASKED = re.compile(r'^\$ leftfold query "(.*)"\n(.*?)^```', re.MULTILINE | re.DOTALL)
TREE = re.compile(r"^ +\d+ ● .*", re.MULTILINE)


@pytest.mark.parametrize(
    ("readme", "prompt", "answered", "language"),
    [
        ("README.md", "list the files here", "Here are the files", "en_US"),
        ("README.zh-CN.md", "列出当前目录的文件", "当前目录里有这些文件", "zh_CN"),
    ],
)
def test_the_tour_is_as_the_readme_tells_it(tmp_path, readme, prompt, answered, language):
    told = (ROOT / readme).read_text()
    person = Person(tmp_path, None, "--offline", LANG=f"{language}.UTF-8")
    for name in ("prices.txt", "shop.py"):
        (person.cwd / name).write_text("")
    person.says(prompt)
    person.waits(r"\[y\]")
    person.presses("y")
    assert answered in told
    person.waits(answered)
    person.says("q")
    person.ended()

    assert topics(person.log()) == NUMBERED.findall(told)
    assert TREE.findall(person.run("tree", person.id()).out) == TREE.findall(told)
    assert FOUND.findall(person.run("search", "prices").out) == FOUND.findall(told)
    [(question, found)] = ASKED.findall(told)
    assert person.run("query", question).out == found
    assert person.run("verify").out.splitlines()[1] in told
