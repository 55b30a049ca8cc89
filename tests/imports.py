"""Draws the imports: ``python -m tests.imports`` writes the picture of docs/architecture.md.

A box is a layer of `app` (see pyproject.toml), or a package; an arrow says that one imports the
other. Arrows that follow from others are left out.
"""

import re
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = re.compile(r"(?<=```mermaid\n).*?(?=```)", re.DOTALL)
BELOW = {
    "infrastructure": ("tools", "model", "columns, event_store, fragments, mapper, replayed, seals, snapshot_store, withheld",
                       "jsonl",
                       "errors, safe_files, secrets"),
    "domain": ("suspicion", "projections", "conversation, commands, renumbering", "fold, history, events, …"),
}  # fmt: skip


def boxes():
    """Return what each box stands for: its name, and the modules in it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [layers] = [c["layers"] for c in contracts["contracts"] if c.get("containers") == ["app"]]
    found = {}
    for layer in layers:
        for part in layer.split(" | "):
            found[part.replace(" : ", ", ")] = tuple(f"app.{one}" for one in part.split(" : "))
    for package, parts in BELOW.items():
        for part in parts:
            found[f"{package}: {part}"] = tuple(f"{package}.{one}" for one in part.split(", "))
    return found


def arrows():
    """Return which box imports which, without what follows from other arrows."""
    graph = grimp.build_graph(
        "app", "infrastructure", "domain", exclude_type_checking_imports=True, cache_dir=None
    )
    box_of = {module: name for name, modules in boxes().items() for module in modules}

    def box(module):
        part = ".".join(module.split(".")[:2])
        rest = "domain.…" if part.startswith("domain.") else None
        return box_of.get(part, box_of.get(rest))

    direct = {name: set() for name in boxes()}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            if (a := box(module)) and (b := box(imported)) and a != b:
                direct[a].add(b)
    reached = {}

    def below(name):
        if name not in reached:
            reached[name] = direct[name].union(*map(below, direct[name]))
        return reached[name]

    return {
        name: sorted(one for one in direct[name] if not any(one in below(x) for x in direct[name]))
        for name in direct
    }


def picture():
    """Return the picture, as Mermaid draws it."""
    names = list(boxes())
    lines = [f'    {number}["{name}"]' for number, name in enumerate(names)]
    for name, imported in arrows().items():
        lines += [f"    {names.index(name)} --> {names.index(one)}" for one in imported]
    return "\n".join(["flowchart TD", *lines, ""])


def page(text):
    """Return the page with the picture as the code is now."""
    return PICTURE.sub(lambda _: picture(), text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
