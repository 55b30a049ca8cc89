"""A transcript on the terminal: what was said and done, with gaps and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n import _
from app.repl.attachments import attached_path
from app.repl.console import is_fancy, say
from app.repl.plain import one_line, plain
from app.repl.tool_view import show_output, summary_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from domain.projections.transcript import Item


PROMPT_MARK = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"


def show_transcript(console: Console, items: Sequence[Item], *, last: int | None = None) -> None:
    """Print *items*, or the *last* of them and how many came before."""
    left_out = 0 if last is None else max(len(items) - last, 0)
    if left_out:
        say(console, _("… {left_out:,} earlier, not shown").format(left_out=left_out), "dim")
    names = {str(item.data.get("id")): item.text for item in items if item.kind == "tool_use"}
    before: Item | None = None
    for number, item in enumerate(items[left_out:]):
        if (number or left_out) and item.kind != "tool_result":
            console.line()
        if item.label is not None and (before is None or before.version != item.version):
            say(console, f"[{one_line(item.label, 200)}]", "magenta")
        _show(console, item, names)
        before = item


def _show(console: Console, item: Item, names: dict[str, str]) -> None:
    match item.kind:
        case "user" if (path := attached_path(item.text)) is not None:
            say(console, _("  attached {path}").format(path=one_line(path, 200)), "dim")
        case "user":
            say(console, _prompt(item.text), "bold")
        case "assistant":
            _show_markdown(console, item.text)
        case "thinking":
            count = item.text.count("\n") + 1
            say(console, f"∴ thought · {count} line{'' if count == 1 else 's'}", "dim italic")
        case "tool_use":
            arguments = item.data.get("input")
            summary = summary_of(item.text, arguments if isinstance(arguments, dict) else {})
            say(console, f"● {summary}")
        case "tool_result":
            name = names.get(str(item.data.get("tool_use_id")), "")
            show_output(console, name, item.text, is_error=item.data.get("is_error") is True)
        case "gap":
            say(console, f"⚠ {plain(item.text)}", "yellow")
        case "summary":
            say(console, "▽ summary of what came before", "cyan")
            _show_markdown(console, item.text)
        case "note":
            say(console, f"✎ {plain(str(item.data.get('kind', 'note')))}", "cyan")
            say(console, plain(item.text))
        case _:
            say(console, f"· {plain(item.text)}", "dim")


def _prompt(text: str) -> str:
    return "\n  ".join(f"{PROMPT_MARK} {plain(text)}".split("\n"))


def _show_markdown(console: Console, text: str) -> None:
    if is_fancy(console):
        from app.repl.markdown import Markdown  # noqa: PLC0415 - not before there is an answer

        console.print(Markdown(text))
    else:
        console.out(plain(text).strip("\n"), highlight=False)
