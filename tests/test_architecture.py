"""What the house promises about itself: layers, names, what is loaded, and what a log can not do."""

import ast
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from importlib.metadata import packages_distributions
from io import StringIO
from pathlib import Path

import grimp
import pytest

from tests.app.programs import MAIN, ROOT, Program, append_line

PACKAGES = ("app", "domain", "infrastructure")
BIN = Path(sys.executable).parent
HEAVY = ("anthropic", "prompt_toolkit", "rich")


def test_the_layers_hold():
    """The contracts of pyproject.toml: app → infrastructure → domain, and what each may know."""
    code = (
        "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def test_no_imports_go_in_a_circle_and_no_two_folders_import_each_other():
    """Types alone may: they are not imported when the program runs."""
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    folders = {module for module in graph.modules if graph.find_children(module)}
    circles = {folder: graph.nominate_cycle_breakers(folder) for folder in folders}

    assert "app.repl" in folders
    assert {folder: imports for folder, imports in circles.items() if imports} == {}


MOST_LINES = {ast.Module: 400, ast.ClassDef: 250, ast.FunctionDef: 45, ast.AsyncFunctionDef: 45}


def test_nothing_is_larger_than_a_reader_can_hold():
    assert list(too_large()) == []


def too_large():
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            name = str(path.relative_to(ROOT))
            for node in ast.walk(ast.parse(text)):
                if (most := MOST_LINES.get(type(node))) is None:
                    continue
                if isinstance(node, ast.Module):
                    lines, what = text.count("\n"), name
                else:
                    lines, what = node.end_lineno - node.lineno + 1, f"{name} {node.name}"
                if lines > most:
                    yield what


RETIRED = {
    "at_hand": "open_conversation",
    "driven": "stream_json",
    "fate": "outcome",
    "frame": "request_body",
    "glance": "summary_events",
    "Meanwhile": "TypeAhead",
    "Pairing": "MessageBuilder",
    "relocation": "missing_directory",
    "Said": "MessageContent",
    "talk": "conversation",
    "TypingLine": "the line of app.repl.bottom",
    "Workshop": "AgentFactory",
    "workshop": "factory",
}
"""Names that meant something, and what it is called now: one word per thing (CONTRIBUTING.md)."""

OTHER_MEANINGS = {
    ("app/commands/recover.py", "fate"): "a key of the JSON, which stays",
    ("app/outputs.py", "fate"): "the same",
    ("app/recovery.py", "fate"): "the same",
    ("app/repl/under_way.py", "frame"): "of a spinner",
    ("infrastructure/tools/terminal.py", "frame"): "of a progress bar",
    ("infrastructure/tools/images.py", "frame"): "of an animated image",
}


def test_no_retired_name_comes_back():
    """In code, and where docs and comments name code: `name` and *name*."""
    back = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            text, name = path.read_text(), str(path.relative_to(ROOT))
            names = {token.string for token in tokenize.generate_tokens(StringIO(text).readline)}
            names |= set(re.findall(r"[`*](\w+)[`*.(]", text))
            back |= {(name, word) for word in names & RETIRED.keys()}
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        names = set(re.findall(r"`(\w+)[`.(]", page.read_text()))
        back |= {(str(page.relative_to(ROOT)), word) for word in names & RETIRED.keys()}

    assert back - OTHER_MEANINGS.keys() - {("docs/json.md", "fate")} == set()


def test_no_module_of_app_shadows_another_when_main_is_run_as_a_script():
    """`python app/main.py` puts app/ first on sys.path: its modules are top-level modules then."""
    ours = {path.stem for path in (ROOT / "app").iterdir() if path.suffix == ".py" or path.is_dir()}
    ours -= {"__init__", "__pycache__"}
    installed = {
        name for name, owners in packages_distributions().items() if owners != ["leftfold"]
    }

    assert "agent" in ours
    assert ours & sys.stdlib_module_names == set()
    assert ours & installed == set()


def test_the_packages_are_these_three_and_typed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [
        "domain",
        "infrastructure",
        "app",
    ]
    assert project["project"]["scripts"] == {"leftfold": "app.start:main"}
    assert [name for name in PACKAGES if not (ROOT / name / "py.typed").exists()] == []


def test_nothing_imports_main():
    """It is `__main__`, and would be loaded a second time."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            assert "app.main" not in path.read_text() or path == MAIN, path


@pytest.mark.parametrize(
    "arguments", [["list"], ["log", "{id}"], ["show", "{id}", "--json"], ["-h"]]
)
def test_looking_at_conversations_loads_neither_the_sdk_nor_the_prompt(tmp_path, arguments):
    """Modules are counted, no clock is looked at: `import anthropic` alone takes a second."""
    program = Program(tmp_path)
    log = write_log(program, "Noted")
    done = program.run(
        *(argument.format(id=log.stem) for argument in arguments),
        environment={"PYTHONPROFILEIMPORTTIME": "1"},
    )

    assert done.code == 0
    loaded = {line.rpartition("|")[2].strip() for line in done.err.splitlines()}
    assert "click" in loaded
    assert {name for name in loaded if name.split(".")[0] in HEAVY} == set()


def write_log(program, topic):
    """Write, by hand, the log of a conversation with one event of *topic*."""
    program.store.mkdir(parents=True)
    log = program.store / "01920000-0000-7000-8000-000000000001.jsonl"
    header = {"format": "leftfold/1", "id": log.stem, "created": "2026-01-01T00:00:00.000000Z"}
    log.write_text(json.dumps(header) + "\n")
    time = "2026-01-01T00:00:00Z"
    append_line(log, 1, "Started", {"timestamp": time, "cwd": str(program.cwd)})
    message = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    append_line(log, 2, "MessageAppended", {"timestamp": time, "parent": None, "message": message})
    append_line(log, 3, topic, {"timestamp": time, "command": "touch hit", "_type_": topic})
    return log


TRAP = "import pathlib\npathlib.Path({0!r}).touch()\ndef boom(*a, **k):\n    pathlib.Path({0!r}).touch()\nboom()\n"


@pytest.mark.parametrize("topic", ["os:system", "evil:boom", "evil", "domain.events:Started"])
def test_a_topic_in_a_log_imports_and_runs_nothing(tmp_path, topic):
    program = Program(tmp_path)
    hit = program.cwd / "hit"
    (program.cwd / "evil.py").write_text(TRAP.format(str(hit)))
    log = write_log(program, topic)

    shown = program.run("show", log.stem)
    assert (shown.code, "hello" in shown.out) == (0, True)
    assert f"unknown topic '{topic}'" in program.run("log", log.stem).out
    verified = program.run("verify")
    assert verified.code == 1
    assert f"unknown topic '{topic}'" in verified.out
    if topic == "evil:boom":
        before = log.read_bytes()
        answered = program.run("--offline", "-c", "-p", "what did I ask you?")
        assert answered.code == 0
        assert "hello" in answered.out
        assert log.read_bytes().startswith(before)
    assert not hit.exists()


@pytest.mark.parametrize(
    "command", [[sys.executable, MAIN], [BIN / "leftfold"]], ids=["main.py", "leftfold"]
)
def test_a_directory_with_packages_of_our_names_is_not_imported_from(tmp_path, command):
    """A project of the user's may well have an app/ or a domain/ of its own."""
    if not Path(command[-1]).exists():
        pytest.skip("the console script is not installed here")
    program = Program(tmp_path)
    hit = tmp_path / "hit"
    for package in PACKAGES:
        (program.cwd / package).mkdir()
        (program.cwd / package / "__init__.py").write_text(TRAP.format(str(hit)))
    for module in ("json", "os", "click", "anthropic", "cli", "sitecustomize"):
        (program.cwd / f"{module}.py").write_text(TRAP.format(str(hit)))
    done = subprocess.run(
        [*map(str, command), "--offline", "--yes", "-p", "list the files here"],
        cwd=program.cwd,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "anthropic.py" in done.stdout
    assert not hit.exists()
