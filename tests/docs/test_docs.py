"""The documentation is true: its examples run, its catalogue is the code's."""

import importlib
import json
import re
from pathlib import Path

import pytest

from app.cli import COMMANDS
from domain.events import TOPICS, Unrecognised
from infrastructure.jsonl import line as lines
from infrastructure.mapper import ConversationMapper
from tests import imports, reference

ROOT = Path(__file__).parents[2]
EVENTS = (ROOT / "docs" / "events.md").read_text()
README = (ROOT / "README.md").read_text()


def code_blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_examples_of_embedding_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = code_blocks((ROOT / "docs" / "embedding.md").read_text(), "python")
    assert len(blocks) == 4

    exec(compile("\n".join(blocks), "docs/embedding.md", "exec"), {"__name__": "embedding"})


def test_the_reference_of_embedding_is_the_code_s_and_names_nothing_private():
    """If this fails: ``python -m tests.reference`` (``make docs``)."""
    text = reference.PAGE.read_text()

    assert reference.page(text) == text
    assert reference.missing() == set()
    assert re.findall(r"(?:\.|`)_[a-z]\w*", text) == []


def test_the_picture_of_the_imports_is_the_code_s():
    """If this fails: ``python -m tests.imports`` (``make docs``)."""
    text = imports.PAGE.read_text()

    assert imports.page(text) == text
    assert len(imports.PICTURE.findall(text)) == 1


PLACE = re.compile(r"`((?:app|domain|infrastructure|tests|docs)/[\w./-]*)(?: ([\w.]+))?`")
WAYS = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", *ROOT.glob("docs/decisions/*")]


@pytest.mark.parametrize("page", WAYS, ids=lambda page: page.name)
def test_the_places_that_a_newcomer_is_sent_to_are_there(page):
    for path, name in PLACE.findall(page.read_text()):
        assert (ROOT / path).exists(), path
        if name:
            found = importlib.import_module(path.removesuffix(".py").replace("/", "."))
            for part in name.split("."):
                found = getattr(found, part, None) or found.__annotations__[part]


def test_each_question_of_a_newcomer_is_answered_in_three_files_at_most():
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("| question |")[2].partition("\n\n")[0]
    answers = table.strip().splitlines()[2:]

    assert len(answers) == 8
    for answer in answers:
        files = {path for path, _ in PLACE.findall(answer)}
        assert len(files) <= 3, answer
        assert files or "see below" in answer


@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_every_event_is_in_the_catalogue_with_a_line_that_reads(topic):
    from eventsourcing.persistence import JSONTranscoder, StoredEvent

    assert re.search(rf"^\| `{topic}` \| (fact|entry) \|", EVENTS, re.MULTILINE)
    [example] = [
        found
        for found in code_blocks(EVENTS, "json")[0].splitlines()
        if json.loads(found)["topic"] == topic
    ]
    line = lines.decode(example.encode())
    assert line.crc_ok
    stored = StoredEvent("01920000-0000-7000-8000-000000000001", line.version, topic, line.state)
    event = ConversationMapper(JSONTranscoder()).to_domain_event(stored)
    assert not isinstance(event, Unrecognised)
    row = re.search(rf"^\| `{topic}` \|.*", EVENTS, re.MULTILINE)[0]
    named = set(re.findall(r"`(\w+)`", row)) - {topic}
    fields = {name for name in event.__struct_encode_fields__ if name not in OWN}
    assert fields <= named


OWN = ("originator_id", "originator_version", "timestamp", "class_version")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_and_has_help(name):
    command = importlib.import_module(f"app.commands.{name}").command

    assert f"leftfold {name}" in README
    assert command.help
    assert all(getattr(p, "help", None) for p in command.params if p.param_type_name == "option")


LESSON = {
    "README.md": (README, "## If you come from"),
    "README.zh-CN.md": ((ROOT / "README.zh-CN.md").read_text(), "## 如果您从"),
}


@pytest.mark.parametrize("name", LESSON)
def test_what_the_lesson_leaves_out_is_where_the_table_says(name):
    """Each row names files that are there, and a command that there is, with its options."""
    text, heading = LESSON[name]
    table = text.partition(heading)[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]

    assert len(rows) == 12
    for _, solved, see in rows:
        files = re.findall(r"\]\(([^)]+)\)", solved)
        assert files
        assert all((ROOT / path).is_file() for path in files)
        assert re.search("`(leftfold|head|grep) ", see)
        for command, *words in (found.split() for found in re.findall("`leftfold ([^`]+)`", see)):
            if not command.startswith("-"):
                options = importlib.import_module(f"app.commands.{command}").command.params
                known = {option for each in options for option in each.opts}
                assert {word for word in words if word.startswith("--")} <= known
