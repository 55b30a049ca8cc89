"""Finds the messages of the code, reads their translations, and compiles them.

    python -m tests.app.messages    # say what is missing or stale; write leftfold.mo

A message is what stands in ``_("…")``, the help of a command or an option of click, and the help
of a command of the REPL, with what Tab says of the words that it takes.
"""

import ast
import inspect
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "app" / "translations" / "zh_CN" / "LC_MESSAGES"
PO, MO = FOLDER / "leftfold.po", FOLDER / "leftfold.mo"
CLICK = "# click"
TABLES = ("COMMANDS", "MESSAGE", "STOPS", "WAITS", "_HINT", "_SAID")


def messages_of_code():
    """Every message, once, in the order of the code."""
    return dict.fromkeys(
        text
        for path in sorted((ROOT / "app").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        for text in _messages(node)
    )


def _messages(node):
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        given = []
        if name == "_":
            given = node.args
            assert isinstance(
                given[0], ast.Constant | ast.Name | ast.Attribute | ast.BoolOp | ast.Subscript
            ), f"a message is a literal: {ast.unparse(node)}"
        elif name == "Command" and len(node.args) > 3:
            given = node.args[2:3]
        elif name == "_words":
            given = [each.value for each in node.keywords]
        elif name == "option":
            given = [each.value for each in node.keywords if each.arg == "help"]
        yield from (each.value for each in given if isinstance(each, ast.Constant))
    elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in TABLES:
        if isinstance(node.value, ast.Dict):
            yield from (each.value for each in node.value.values if isinstance(each, ast.Constant))
        elif isinstance(node.value, ast.Constant):
            yield node.value.value
    elif isinstance(node, ast.FunctionDef) and any(
        "click.command" in (d := ast.unparse(each)) or "click.group" in d
        for each in node.decorator_list
    ):
        yield inspect.cleandoc(ast.get_docstring(node))


def translations(path=PO):
    """What the .po file says: message → translation."""
    found, key, value = {}, None, None
    for line in [*path.read_text("utf-8").splitlines(), 'msgid ""']:
        if line.startswith("msgid "):
            if key is not None:
                assert key not in found, f"twice: {key}"
                found[key] = value
            key, value, is_key = ast.literal_eval(line[6:]), "", True
        elif line.startswith("msgstr "):
            value, is_key = ast.literal_eval(line[7:]), False
        elif line.startswith('"'):
            text = ast.literal_eval(line)
            key, value = (key + text, value) if is_key else (key, value + text)
    return found


def clicks_own(path=PO):
    """The messages that are click's: they stand in the .po file after a line that says so."""
    before = path.read_text("utf-8").partition(CLICK)[0]
    return translations().keys() - {key for key in translations() if _quoted(key) in before}


def _quoted(text):
    return 'msgid "' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def compiled(catalogue):
    """The .mo file, as gettext reads it."""
    items = sorted((key.encode(), text.encode()) for key, text in catalogue.items())
    size = 7 * 4
    at = size + 16 * len(items)
    tables, data = [[], []], b""
    for column in (0, 1):
        for item in items:
            tables[column] += [len(item[column]), at + len(data)]
            data += item[column] + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(items), size, size + 8 * len(items), 0, at)
    numbers = tables[0] + tables[1]
    return head + struct.pack(f"<{len(numbers)}I", *numbers) + data


def main():
    said, known = messages_of_code(), translations()
    missing = [text for text in said if not known.get(text)]
    stale = known.keys() - said.keys() - clicks_own() - {""}
    for text in missing:
        print(f'{_quoted(text)}\nmsgstr ""\n')
    for text in sorted(stale):
        print(f"stale: {text!r}", file=sys.stderr)
    MO.write_bytes(compiled(known))
    return bool(missing or stale)


if __name__ == "__main__":
    raise SystemExit(main())
