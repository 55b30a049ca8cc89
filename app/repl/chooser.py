"""A list to choose from, filtered by what is typed: the frame of the picker and the navigator."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.utils import get_cwidth

from app.i18n import _
from app.repl.applications import InlineApplication, take_escape_soon
from app.repl.suspending import suspend
from app.view.colours import prompt_style
from app.view.plain import fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyPressEvent
    from prompt_toolkit.output import Output

Value = TypeVar("Value")

_BETWEEN_KEYS = " · "
_PREVIEW_LINES = 8
MARGIN = 3  # the mark of the row under the cursor, and a cell that stays free
_LEAST_HEIGHT_FOR_A_PREVIEW = 20


class Choice(NamedTuple, Generic[Value]):
    """One row: what it stands for, its text on one plain line, and how it looks."""

    value: Value
    text: str
    style: str = ""


class Chosen(NamedTuple, Generic[Value]):
    """What the person did, by the name of the action, and with which row."""

    action: str
    value: Value


class Folding(Protocol[Value]):
    """Rows that stand below others and can be folded away."""

    def rows(self) -> Sequence[Choice[Value]]:
        """Return the rows that are to be seen."""

    def fold(self, value: Value) -> Value:
        """Fold away what stands below *value*; return where to stand then."""

    def unfold(self, value: Value) -> Value:
        """Bring back what stands below *value*; return where to stand then."""


class Chooser(Generic[Value]):
    """Asks once. *actions* are keys other than Enter: ``{"c-r": "rename"}``.

    Args:
        title: What is chosen.
        choices: The rows.
        actions: Keys, each with the name of what it does. Enter is ``"enter"``.
        hint: The last line: which keys there are.
        preview: Text to show of the row under the cursor.
        at: The value to begin at.
        wanted: What to begin filtering by.
        folding: What ← and → fold and unfold, while nothing is typed to filter by: whoever
            searches finds what is folded away too.
    """

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice[Value]],
        *,
        actions: Mapping[str, str],
        hint: str,
        preview: Callable[[Value], str] | None = None,
        at: Value | None = None,
        wanted: str = "",
        folding: Folding[Value] | None = None,
        source: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._title, self._choices, self._hint, self._preview = title, choices, hint, preview
        self._folding = folding
        self._filter = Buffer(multiline=False, on_text_changed=lambda _: self._narrow(self._here()))
        self._shown: Sequence[Choice[Value]] = ()
        self._place = self._top = 0
        self._narrow(at)
        self._app: InlineApplication[Chosen[Value] | None] = InlineApplication(
            layout=self._layout(),
            key_bindings=self._keys(actions),
            erase_when_done=True,
            style=prompt_style(),
            input=source,
            output=output,
        )
        take_escape_soon(self._app, is_key_of_its_own=False)
        if wanted:
            self._filter.insert_text(wanted)

    @property
    def wanted(self) -> str:
        """What was typed to filter by."""
        return self._filter.text

    async def ask(self) -> Chosen[Value] | None:
        """Return what was chosen; None if nothing was."""
        try:
            return await self._app.run_async(handle_sigint=False)
        except (EOFError, KeyboardInterrupt, OSError):
            return None  # the terminal has gone

    def _here(self) -> Value | None:
        return self._shown[self._place].value if self._shown else None

    def _narrow(self, at: Value | None) -> None:
        """Show what was typed for, or what is not folded away, with the cursor at *at*."""
        words = self._filter.text.casefold().split()
        if words or self._folding is None:
            self._shown = [
                each
                for each in self._choices
                if all(word in each.text.casefold() for word in words)
            ]
        else:
            self._shown = self._folding.rows()
        self._place = self._place_of(at)

    def _place_of(self, at: Value | None) -> int:
        """Return where *at* is shown, or what it is folded into: the row before it; else 0."""
        if at is None:
            return 0
        places = {each.value: place for place, each in enumerate(self._shown)}
        if at in places or self._folding is None:
            return places.get(at, 0)
        before = takewhile(lambda each: each.value != at, self._choices)
        return max((places.get(each.value, 0) for each in before), default=0)

    # -- the screen ----------------------------------------------------------------------------

    def _layout(self) -> Layout:
        line, search_for = Dimension.exact(1), _("  search: ")
        search = VSplit(
            [
                Window(FormattedTextControl(search_for), width=get_cwidth(search_for), height=line),
                Window(BufferControl(self._filter), height=line),
            ]
        )
        rows = FormattedTextControl(
            self._rows,
            get_cursor_position=lambda: Point(0, self._place - self._first_seen()),
            show_cursor=False,
        )
        preview = Window(
            FormattedTextControl(self._previewed),
            height=_PREVIEW_LINES + 1,
            style="class:dim",
        )
        has_preview = Condition(
            lambda: (
                self._preview is not None
                and get_app().output.get_size().rows >= _LEAST_HEIGHT_FOR_A_PREVIEW
            )
        )
        return Layout(
            HSplit(
                [
                    Window(FormattedTextControl(self._heading), height=line),
                    search,
                    Window(rows, height=self._height, wrap_lines=False),
                    ConditionalContainer(preview, has_preview),
                    Window(
                        FormattedTextControl(self._hint_lines),
                        dont_extend_height=True,
                        style="class:dim",
                    ),
                ]
            )
        )

    def _heading(self) -> FormattedText:
        count = _(" ({shown} of {all})").format(shown=len(self._shown), all=len(self._choices))
        return FormattedText([("bold", self._title), ("class:dim", count)])

    def _hint_lines(self) -> str:
        """Return the hint, broken between keys where the screen is narrow."""
        columns = get_app().output.get_size().columns
        first, *others = self._hint.split(_BETWEEN_KEYS)
        lines = [first]
        for each in others:
            longer = f"{lines[-1]}{_BETWEEN_KEYS}{each}"
            if get_cwidth(longer) <= columns:
                lines[-1] = longer
            else:
                lines.append(each)
        return "\n".join(lines)

    def _height(self) -> Dimension:
        room = get_app().output.get_size().rows - 5 - self._hint_lines().count("\n")
        if self._preview is not None:
            room -= _PREVIEW_LINES + 1
        most = max(min(len(self._choices), room), 1)
        return Dimension(min=1, preferred=most, max=most)

    def _rows(self) -> FormattedText:
        if not self._shown:
            return FormattedText([("class:dim", _("  (nothing matches)"))])
        parts: list[tuple[str, str]] = []
        width = get_app().output.get_size().columns - MARGIN
        first = self._first_seen()
        seen = self._shown[first : first + self._height().max]
        for number, each in enumerate(seen, first):
            is_here = number == self._place
            end = "\n" if number < first + len(seen) - 1 else ""
            style = "reverse" if is_here else each.style
            parts.append((style, f"{'▸' if is_here else ' '} {fitted(each.text, width)}{end}"))
        return FormattedText(parts)

    def _first_seen(self) -> int:
        """Return the place of the first row on the screen: thousands may be above and below it."""
        room = self._height().max
        lowest = min(self._top, max(len(self._shown) - room, 0))
        self._top = min(max(lowest, self._place - room + 1), self._place)
        return self._top

    def _previewed(self) -> str:
        if self._preview is None or not self._shown:
            return ""
        lines = self._preview(self._shown[self._place].value).split("\n")
        return "\n".join(["", *(f"  {line}" for line in lines[-_PREVIEW_LINES:])])

    # -- the keys ------------------------------------------------------------------------------

    def _keys(self, actions: Mapping[str, str]) -> KeyBindings:
        keys = KeyBindings()
        for key, rows in {"up": -1, "down": 1, "c-p": -1, "c-n": 1}.items():
            keys.add(key)(self._mover(rows))
        keys.add("pageup")(self._mover(-10))
        keys.add("pagedown")(self._mover(10))
        for key, rows in {"home": -len(self._choices), "end": len(self._choices)}.items():
            keys.add(key)(self._mover(rows))
            keys.add(f"c-{key}")(self._mover(rows))
        keys.add("c-z")(lambda _event: run_in_terminal(suspend))
        for key, action in {"enter": "enter", **actions}.items():
            keys.add(key, eager=True)(self._doer(action))
        if self._folding is not None:
            is_not_searching = Condition(lambda: not self._filter.text)
            for key, change in (("left", self._folding.fold), ("right", self._folding.unfold)):
                keys.add(key, filter=is_not_searching)(self._changer(change))

        @keys.add("escape", eager=True)
        @keys.add("c-c")
        @keys.add("c-d")
        @keys.add(Keys.SIGINT)
        def leave(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        return keys

    def _mover(self, rows: int) -> Callable[[KeyPressEvent], None]:
        def move(_event: KeyPressEvent) -> None:
            self._place = max(min(self._place + rows, len(self._shown) - 1), 0)

        return move

    def _changer(self, change: Callable[[Value], Value]) -> Callable[[KeyPressEvent], None]:
        def do(_event: KeyPressEvent) -> None:
            if self._shown:
                self._narrow(change(self._shown[self._place].value))

        return do

    def _doer(self, action: str) -> Callable[[KeyPressEvent], None]:
        def do(event: KeyPressEvent) -> None:
            if self._shown and not event.app.is_done:
                event.app.exit(result=Chosen(action, self._shown[self._place].value))

        return do


async def ask_line(question: str, default: str = "") -> str | None:
    """Ask for one line; None if the person leaves instead."""
    from app.repl.line_session import LineSession  # noqa: PLC0415

    session: LineSession[str] = LineSession(question, erase_when_done=True, style=prompt_style())
    try:
        return await session.prompt_async(default=default, handle_sigint=False)
    except (EOFError, KeyboardInterrupt, OSError):
        return None
