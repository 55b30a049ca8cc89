"""A transcript for people: what was said and done, with gaps and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.approvers import refusal
from app.i18n import _
from app.view.console import is_fancy, say, show
from app.view.plain import one_line, plain
from app.view.tools import Line, output_lines, summary_of
from domain.projections.transcript import Item, last_exchange, recent, transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from domain.conversation import Conversation
    from domain.events import Version

ATTACHED = "(The user attached the file "
"""How the block of an attached file begins; its path follows."""

PROMPT_MARK = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
_RESTORED_ITEMS = 20
_ITEMS_OF_A_PLACE = 12
_LONGEST_REASON = 600
_MARKDOWN = "markdown"  # the style of a line that is a text of its own


def show_transcript(console: Console, items: Sequence[Item], *, earlier: int = 0) -> None:
    """Print *items*, and how many messages came *earlier*, if any did."""
    if not is_fancy(console):
        if text := as_text(items, earlier=earlier):
            console.out(text, highlight=False)
        return
    from app.view.markdown import Markdown  # noqa: PLC0415 - only where something was said

    for line in _lines(items, earlier):
        if line.style == _MARKDOWN:
            console.print(Markdown(line.text), crop=False)
        else:
            print_line = show if line.is_whole else say
            print_line(console, line.text, line.style)


def show_past(console: Console, conversation: Conversation) -> None:
    """Show what was said last in a conversation."""
    items, earlier = recent(conversation, _RESTORED_ITEMS)
    if items:
        show_transcript(console, items, earlier=earlier)
        console.line()


def show_place(console: Console, conversation: Conversation) -> None:
    """Show where a conversation goes on: what was said last on the way to its leaf."""
    items, _earlier = recent(conversation, _ITEMS_OF_A_PLACE)
    if items:
        say(console, _("You are here, at entry {entry}:").format(entry=conversation.leaf), "dim")
        show_transcript(console, last_exchange(items))
    else:
        say(console, _("You are at the beginning: nothing has been said."), "dim")


def show_entry(console: Console, conversation: Conversation, entry: Version | None) -> None:
    """Show the *entry* that was looked for, and what it followed; nothing changes by that."""
    if entry is None or not conversation.has_entry(entry):
        return
    items = [item for item in transcript(conversation, entry) if item.version <= entry]
    results = {item.version for item in items if item.kind == "tool_result"}
    before = sorted({item.version for item in items} - results - {entry})
    least = before[-1] if before else entry  # never the result of a call that is left out
    say(console, _("Found, at entry {entry}:").format(entry=entry), "dim")
    show_transcript(console, [item for item in items if item.version >= least])
    console.line()
    if entry != conversation.leaf:
        goes_on = _(
            "The conversation goes on after entry {leaf}. /tree {entry} goes back to this one, "
            "/fork {entry} goes on from it in a copy."
        )
        say(console, goes_on.format(leaf=conversation.leaf, entry=entry), "dim")


def as_text(items: Sequence[Item], *, earlier: int = 0) -> str:
    """Return *items*, as plain text: no colours, and Markdown as it is."""
    lines = _lines(items, earlier)
    return "\n".join(
        plain(line.text).strip("\n") if line.style == _MARKDOWN else line.text for line in lines
    )


def _lines(items: Sequence[Item], earlier: int) -> Iterator[Line]:
    if earlier:
        yield Line(_("… {left_out:,} earlier, not shown").format(left_out=earlier), "dim")
    before: Item | None = None
    results = _results(items)
    below = {id(result) for result in results.values()}
    for number, item in enumerate(items):
        if id(item) in below:
            continue
        if number or earlier:
            yield Line("")
        if item.label is not None and (before is None or before.version != item.version):
            yield Line(f"[{one_line(item.label, 200)}]", "magenta")
        yield from _item_lines(item)
        if number in results:
            yield from _result_lines(item.text, results[number])
        elif item.kind == "tool_use":
            yield Line(_("  no result: it was stopped, or never began"), "yellow")
        before = item


def _results(items: Sequence[Item]) -> dict[int, Item]:
    """Return the result of each call, by the call's place: results may come in any order.

    An id that was used before belongs to the newest answer that has it.
    """
    results: dict[int, Item] = {}
    waiting: dict[object, list[int]] = {}
    for number, item in enumerate(items):
        if item.kind == "tool_use":
            calls = waiting.setdefault(item.data.get("id"), [])
            if calls and items[calls[-1]].version != item.version:
                calls.clear()
            calls.append(number)
        elif item.kind == "tool_result" and (
            calls := waiting.get(item.data.get("tool_use_id"), [])
        ):
            results[calls.pop(0)] = item
    return results


def _result_lines(name: str, result: Item) -> Iterator[Line]:
    if result.label is not None:
        yield Line(f"[{one_line(result.label, 200)}]", "magenta")
    is_error = result.data.get("is_error") is True
    if is_error and (refused := refusal(result.text)) is not None:
        yield Line("  " + one_line(refused, _LONGEST_REASON), "yellow")
    else:
        yield from output_lines(name, result.text, is_error=is_error)


def _item_lines(item: Item) -> Iterator[Line]:
    match item.kind:
        case "user" if (path := attached_path(item.text)) is not None:
            yield Line(_("  attached {path}").format(path=one_line(path, 200)), "dim")
        case "user":
            yield Line(_prompt(item.text), "bold")
        case "assistant":
            yield Line(item.text, _MARKDOWN)
        case "thinking":
            yield Line(thought(item.text.count("\n") + 1), "dim italic")
        case "tool_use":
            arguments = item.data.get("input")
            summary = summary_of(item.text, arguments if isinstance(arguments, dict) else {})
            yield Line(f"● {summary}")
        case "tool_result":
            yield Line(_("● a result whose call is not here"), "yellow")
            yield from output_lines("", item.text, is_error=item.data.get("is_error") is True)
        case "gap":
            yield Line(f"⚠ {_gap(item)}", "yellow")
        case "summary":
            yield Line(_("▽ summary of what came before"), "cyan")
            yield Line(item.text, _MARKDOWN)
        case "note":
            yield from _note(item)
        case _:
            yield Line(f"· {plain(item.text)}", "dim")


def _note(item: Item) -> Iterator[Line]:
    kind = plain(str(item.data.get("kind", "note")))
    if item.data.get("visible") is False and "/" in kind:
        # A line of an imported history, kept as it stood: `leftfold log` shows it.
        yield Line(f"· {kind}", "dim")
        return
    yield Line(f"✎ {kind}", "cyan")
    yield Line(plain(item.text), is_whole=True)


def attached_path(text: str) -> str | None:
    """Return the path if *text* is the block of an attached file."""
    if not text.startswith(ATTACHED):
        return None
    return text.removeprefix(ATTACHED).partition("\n")[0].rstrip(":)")


def _gap(item: Item) -> str:
    """Return what was lost, in the person's language."""
    match item.data:
        case {"first": int(first), "unreadable": True}:
            return _("1 event that this version cannot read ({first})").format(first=first)
        case {"first": int(first), "last": int(last)}:
            message = _("events lost here: {count} ({first}-{last})")
            return message.format(count=last - first + 1, first=first, last=last)
        case _:
            return plain(item.text)


def thought(lines: int, time: str = "") -> str:
    """Return the one line that stays of thinking: how much it was, and in *time* how long."""
    size = ("", _(" · 1 line"))[lines] if lines <= 1 else _(" · {count} lines").format(count=lines)
    return _("∴ thought") + time + size


def _prompt(text: str) -> str:
    return "\n  ".join(f"{PROMPT_MARK} {plain(text)}".split("\n"))
