"""The JSON Schema of a log: every event that there is keeps to it, and what is wrong does not."""

import json
from pathlib import Path

import jsonschema
import pytest

from app.application import Conversations
from app.importing import import_file
from tests.golden.examples import FILE

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "schemas" / "log-file.json").read_text())
LINE = jsonschema.Draft202012Validator(SCHEMA)
EXAMPLES = [json.loads(line) for line in FILE.read_text().splitlines()]


def line_of(example):
    return {
        "v": example["version"],
        "topic": example["topic"],
        "state": json.loads(example["state"]),
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"{each['version']} {each['topic']}")
def test_each_example_of_an_event_keeps_to_it(example):
    LINE.validate(line_of(example))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"{each['version']} {each['topic']}")
def test_an_event_without_its_time_does_not(example):
    line = line_of(example)
    del line["state"]["timestamp"]
    assert not LINE.is_valid(line)


def test_a_whole_log_keeps_to_it(home):
    golden = ROOT / "tests" / "golden" / "histories" / "claude_code.jsonl"
    with Conversations({"LEFTFOLD_STORE": str(home)}) as conversations:
        done = import_file(conversations, golden, format_name=None, cwd="/", tell=lambda *_: None)
        lines = conversations.store.path_of(done.id).read_text().splitlines()

    for line in lines:
        LINE.validate(json.loads(line))


@pytest.mark.parametrize(
    "line",
    [
        {
            "v": 0,
            "topic": "Archived",
            "state": {"timestamp": "2026-01-01T00:00:00Z", "archived": True},
        },
        {"v": 1, "topic": "Archived", "state": {"timestamp": "2026-01-01T00:00:00Z"}},
        {"topic": "Archived", "state": {"timestamp": "2026-01-01T00:00:00Z", "archived": True}},
        {"v": 1, "topic": "Archived"},
        {"format": "other/1", "id": "x"},
        {},
    ],
    ids=json.dumps,
)
def test_what_is_no_line_does_not(line):
    assert not LINE.is_valid(line)
