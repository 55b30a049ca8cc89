import asyncio
import json

import pytest

from infrastructure.tools import TOOLS
from infrastructure.tools.bash import Bash

BY_NAME = {tool.name: tool for tool in TOOLS}

SCHEMAS = {
    "bash": {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "minLength": 1,
                "description": "The command, as you would type it in bash",
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 3600,
                "default": 120,
                "description": "Seconds after which the command and all its children are killed",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    "read": {
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "Path of the file, absolute or from the working directory",
            },
            "offset": {
                "type": "integer",
                "minimum": 1,
                "default": 1,
                "description": "First line to show, counted from 1",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "default": 2000,
                "description": "How many lines to show at most",
            },
            "numbers": {
                "type": "boolean",
                "default": False,
                "description": "Whether each line begins with its number",
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    "write": {
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "Path of the file, absolute or from the working directory",
            },
            "content": {"type": "string", "description": "All of the file's new text"},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    "edit": {
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "Path of the file, absolute or from the working directory",
            },
            "edits": {
                "type": "array",
                "minItems": 1,
                "description": "The edits; each is matched against the file as it is now, and "
                "they must not overlap",
                "items": {
                    "type": "object",
                    "properties": {
                        "old_text": {
                            "type": "string",
                            "minLength": 1,
                            "description": "The text to replace, exactly as in the file; it must "
                            "occur exactly once",
                        },
                        "new_text": {
                            "type": "string",
                            "description": "The text that takes its place; empty to delete",
                        },
                    },
                    "required": ["old_text", "new_text"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["path", "edits"],
        "additionalProperties": False,
    },
}


def test_these_are_the_tools_in_this_order():
    names = ["bash", "read", "write", "edit", "ls", "find", "grep"]
    assert [tool.name for tool in TOOLS] == names
    assert [tool.name for tool in TOOLS if tool.needs_approval] == ["bash", "write", "edit"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_definition_is_what_the_api_wants(name):
    definition = BY_NAME[name].definition()

    assert list(definition) == ["name", "description", "input_schema"]
    assert definition["name"] == name
    assert definition["description"]
    assert definition["input_schema"] == SCHEMAS[name]


def test_definitions_are_the_same_bytes_every_time():
    first, second = ([json.dumps(tool.definition()) for tool in TOOLS] for _ in range(2))

    assert first == second


@pytest.mark.parametrize(
    ("name", "arguments", "fields"),
    [
        ("bash", {}, ["command"]),
        ("bash", {"command": "ls", "timeout": 0}, ["timeout"]),
        ("bash", {"command": "ls", "timeout": 1e9}, ["timeout"]),
        ("bash", {"command": ["ls"], "cwd": "/"}, ["command", "cwd"]),
        ("bash", {"command": None}, ["command"]),
        ("read", {"path": "a", "offset": 0, "limit": "many"}, ["offset", "limit"]),
        ("write", {"path": "a"}, ["content"]),
        ("edit", {"path": "a", "edits": []}, ["edits"]),
        ("edit", {"path": "a", "edits": [{"old_text": "a"}]}, ["edits.0.new_text"]),
        ("edit", {"path": "a", "edits": [{"old_text": "", "new_text": ""}]}, ["edits.0.old_text"]),
        ("read", ["not", "a", "dict"], ["arguments"]),
        ("read", None, ["arguments"]),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_done(context, name, arguments, fields):
    output = asyncio.run(BY_NAME[name].run(arguments, context))

    assert output.is_error
    for field in fields:
        assert f"{field}: " in output.content
    assert "http" not in output.content
    assert list(context.cwd.iterdir()) == []


def test_null_means_that_an_optional_argument_is_not_given(call):
    assert call("bash", command="echo hi", timeout=None).content == "hi\n"
    assert call("bash", command="echo hi", timeout=float("nan")).content == "hi\n"


@pytest.mark.parametrize(
    ("name", "arguments", "summary"),
    [
        ("bash", {"command": "ls -la"}, "$ ls -la"),
        ("bash", {"command": "cd x &&\n  rm -rf y\n"}, "$ cd x && ⏎ rm -rf y"),
        ("bash", {"command": "x" * 1000}, f"$ {'x' * 298}… (1,002 characters)"),
        ("bash", {"command": "\ud83d"}, "$ \ufffd"),
        ("read", {"path": "a.py"}, "read a.py"),
        ("read", {"path": "a.py", "offset": 10, "limit": 31}, "read a.py:10-40"),
        ("read", {"path": "a.py", "offset": 10}, "read a.py:10-"),
        ("read", {"path": "a.py", "limit": 5}, "read a.py:1-5"),
        ("write", {"path": "a.txt", "content": "x\n" * 12}, "write a.txt (12 lines)"),
        ("write", {"path": "a.txt", "content": "x"}, "write a.txt (1 line)"),
        ("write", {"path": "a.txt", "content": ""}, "write a.txt (0 lines)"),
        ("edit", {"path": "a.py", "edits": [{"old_text": "a", "new_text": "b"}]}, "edit a.py"),
        (
            "edit",
            {"path": "a.py", "edits": [{"old_text": "a", "new_text": "b"}] * 2},
            "edit a.py (2 edits)",
        ),
        ("bash", {}, "bash {}"),
        ("edit", {"path": "a", "all": True}, 'edit {"path": "a", "all": true}'),
        ("read", None, "read null"),
    ],
)
def test_a_summary_is_one_line_whatever_the_arguments(name, arguments, summary):
    assert BY_NAME[name].summary(arguments) == summary


def test_a_tool_that_breaks_gives_an_error_to_the_model(context, monkeypatch):
    async def broken(*_arguments, **_named):
        raise RuntimeError("a bug")

    monkeypatch.setattr("infrastructure.tools.bash.run_shell", broken)

    output = asyncio.run(Bash().run({"command": "ls"}, context))

    assert (output.content, output.is_error) == ("bash failed: RuntimeError: a bug", True)
