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
from tests import reference

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


@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_every_event_is_in_the_catalogue_with_a_line_that_reads(topic):
    from eventsourcing.persistence import JSONTranscoder, StoredEvent

    assert re.search(rf"^\| `{topic}` \| (fact|entry) \|", EVENTS, re.MULTILINE)
    [example] = [
        found
        for found in code_blocks(EVENTS, "json")[0].splitlines()
        if json.loads(found)["topic"] == topic
    ]
    line = lines.fast(example.encode())
    assert line.crc_ok
    stored = StoredEvent("01920000-0000-7000-8000-000000000001", line.version, topic, line.state)
    event = ConversationMapper(JSONTranscoder()).to_domain_event(stored)
    assert not isinstance(event, Unrecognised)
    row = re.search(rf"^\| `{topic}` \|.*", EVENTS, re.MULTILINE)[0]
    named = set(re.findall(r"`(\w+)`", row)) - {topic}
    fields = {name for name in event.__struct_encode_fields__ if name not in OWN}
    assert fields <= named


OWN = ("originator_id", "originator_version", "timestamp")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_and_has_help(name):
    command = importlib.import_module(f"app.commands.{name}").command

    assert f"leftfold {name}" in README
    assert command.help
    assert all(getattr(p, "help", None) for p in command.params if p.param_type_name == "option")
