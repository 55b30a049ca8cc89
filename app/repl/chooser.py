"""A list to choose from, filtered by what is typed: the frame of the picker and the navigator."""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText, StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    UIContent,
    UIControl,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput

from app.i18n import _
from app.repl.applications import InlineApplication, take_escape_soon
from app.repl.unread_terminal import suspend
from app.view.colours import prompt_style
from app.view.plain import cells, fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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


class Chooser(UIControl, Generic[Value]):
    """Asks once. *actions* are keys other than Enter: ``{"c-r": "rename"}``.

    Args:
        title: What is chosen.
        choices: The rows.
        actions: Keys, each with the name of what it does. Enter is ``"enter"``.
        hint: The last line: which keys there are.
        preview: Text to show of the row under the cursor.
        at: The value to begin at.
        wanted: What to begin filtering by.
        unfolded: Returns the rows to show while nothing is typed to filter by, where some are
            folded away: those are searched, too.
        folds: What keys fold and unfold at a row meanwhile; it returns where to stand then.
        look_for: Told what is typed to filter by; what is found elsewhere comes by `offer`.
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
        unfolded: Callable[[], Sequence[Choice[Value]]] | None = None,
        folds: Mapping[str, Callable[[Value], Value]] | None = None,
        look_for: Callable[[str], None] = lambda _words: None,
    ) -> None:
        self._title, self._choices, self._hint, self._preview = title, choices, hint, preview
        self._unfolded = unfolded
        self._narrowed = {"": [(each.text.casefold(), each) for each in choices]}
        self._look_for = look_for
        self._offered: tuple[str, Sequence[Choice[Value]]] = ("", ())
        self._more = 0  # of those that are shown: so many were found elsewhere
        self._note = ""
        self._filter = Buffer(multiline=False, on_text_changed=lambda _: self._typed())
        self._shown: Sequence[Choice[Value]] = ()
        self._place = 0
        self._narrow(at)
        self._app: InlineApplication[Chosen[Value] | None] = InlineApplication(
            layout=self._layout(),
            key_bindings=self._keys(actions, folds or {}),
            erase_when_done=True,
            style=prompt_style(),
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

    def offer(self, words: str, choices: Sequence[Choice[Value]]) -> None:
        """Show *choices* below those that have *words* in them: these were found elsewhere."""
        self._offered = words, choices
        self._narrow(self._here())
        self._app.invalidate()

    def note(self, text: str) -> None:
        """Say *text* behind the title."""
        self._note = text
        self._app.invalidate()

    def _typed(self) -> None:
        self._narrow(self._here())
        self._look_for(self._filter.text)

    def _here(self) -> Value | None:
        return self._shown[self._place].value if self._shown else None

    def _narrow(self, at: Value | None) -> None:
        """Show what was typed for, or what is not folded away, with the cursor at *at*."""
        words = self._filter.text.casefold().split()
        if words or self._unfolded is None:
            offered_for, offered = self._offered
            if offered_for != self._filter.text:
                offered = _with_words(words, offered)
            titled = self._titled(words)
            self._shown, self._more = [*titled, *offered], len(offered)
        else:
            self._shown, self._more = self._unfolded(), 0
        self._place = self._place_of(at)

    def _titled(self, words: Sequence[str]) -> list[Choice[Value]]:
        """Return the choices with *words* in their text, by what a beginning of it had found."""
        text = self._filter.text
        if text not in self._narrowed:
            ends = range(len(text), -1, -1)
            before = next(text[:end] for end in ends if text[:end] in self._narrowed)
            among = self._narrowed[before]
            self._narrowed[text] = [
                each for each in among if all(word in each[0] for word in words)
            ]
        return [choice for _text, choice in self._narrowed[text]]

    def _place_of(self, at: Value | None) -> int:
        """Return where *at* is shown, or what it is folded into: the row before it; else 0."""
        if at is None:
            return 0
        if self._unfolded is None:
            shown = enumerate(self._shown)
            return next((place for place, each in shown if each.value == at), 0)
        places = {each.value: place for place, each in enumerate(self._shown)}
        if at in places:
            return places[at]
        before = takewhile(lambda each: each.value != at, self._choices)
        return max((places.get(each.value, 0) for each in before), default=0)

    # -- the screen ----------------------------------------------------------------------------

    def _layout(self) -> Layout:
        search = BufferControl(self._filter, input_processors=[BeforeInput(_("  search: "))])
        preview = FormattedTextControl(self._previewed)
        hint = FormattedTextControl(self._hint_lines)
        return Layout(
            HSplit(
                [
                    Window(FormattedTextControl(self._heading), height=1),
                    Window(search, height=1),
                    Window(self, height=self._height),
                    ConditionalContainer(
                        Window(preview, height=_PREVIEW_LINES + 1, style="class:dim"),
                        Condition(self._has_preview),
                    ),
                    Window(hint, dont_extend_height=True, style="class:dim"),
                ]
            ),
            search,
        )

    def create_content(self, width: int, height: int) -> UIContent:  # noqa: ARG002
        """Return the rows: only those that are on the screen are drawn."""

        def row(place: int) -> StyleAndTextTuples:
            if not self._shown:
                return [("class:dim", _("  (nothing matches)"))]
            each, is_here = self._shown[place], place == self._place
            text = f"{'▸' if is_here else ' '} {fitted(each.text, width - MARGIN)}"
            return [("reverse" if is_here else each.style, text)]

        here = Point(0, self._place)
        return UIContent(row, max(len(self._shown), 1), here, show_cursor=False)

    def _heading(self) -> FormattedText:
        shown = len(self._shown) - self._more
        count = _(" ({shown} of {all})").format(shown=shown, all=len(self._choices))
        if self._more:
            count += _(" · {count} in what was said").format(count=self._more)
        note = f" · {self._note}" if self._note else ""
        return FormattedText([("bold", self._title), ("class:dim", count + note)])

    def _hint_lines(self) -> str:
        """Return the hint, broken between keys where the screen is narrow."""
        columns = get_app().output.get_size().columns
        first, *others = self._hint.split(_BETWEEN_KEYS)
        lines = [first]
        for each in others:
            longer = f"{lines[-1]}{_BETWEEN_KEYS}{each}"
            if cells(longer) <= columns:
                lines[-1] = longer
            else:
                lines.append(each)
        return "\n".join(lines)

    def _height(self) -> Dimension:
        room = get_app().output.get_size().rows - 5 - self._hint_lines().count("\n")
        if self._has_preview():
            room -= _PREVIEW_LINES + 1
        most = max(min(max(len(self._choices), len(self._shown)), room), 1)
        return Dimension(min=1, preferred=most, max=most)

    def _has_preview(self) -> bool:
        rows = get_app().output.get_size().rows
        return self._preview is not None and rows >= _LEAST_HEIGHT_FOR_A_PREVIEW

    def _previewed(self) -> str:
        if self._preview is None or not self._shown:
            return ""
        lines = self._preview(self._shown[self._place].value).split("\n")
        return "\n".join(["", *(f"  {line}" for line in lines[-_PREVIEW_LINES:])])

    # -- the keys ------------------------------------------------------------------------------

    def _keys(
        self, actions: Mapping[str, str], folds: Mapping[str, Callable[[Value], Value]]
    ) -> KeyBindings:
        keys = KeyBindings()
        most = len(self._choices)
        steps = {"up": -1, "down": 1, "c-p": -1, "c-n": 1, "pageup": -10, "pagedown": 10}
        for key, rows in {
            **steps,
            "home": -most,
            "c-home": -most,
            "end": most,
            "c-end": most,
        }.items():
            keys.add(key)(partial(self._move, rows))
        keys.add("c-z")(lambda _event: run_in_terminal(suspend))
        for key, action in {"enter": "enter", **actions}.items():
            keys.add(key, eager=True)(partial(self._end, action))
        is_not_searching = Condition(lambda: not self._filter.text)
        for key, change in folds.items():
            keys.add(key, filter=is_not_searching)(partial(self._fold, change))

        @keys.add("escape", eager=True)
        @keys.add("c-c")
        @keys.add("c-d")
        @keys.add(Keys.SIGINT)
        def leave(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        return keys

    def _move(self, rows: int, _event: KeyPressEvent) -> None:
        self._place = max(min(self._place + rows, len(self._shown) - 1), 0)

    def _fold(self, change: Callable[[Value], Value], _event: KeyPressEvent) -> None:
        if self._shown:
            self._narrow(change(self._shown[self._place].value))

    def _end(self, action: str, event: KeyPressEvent) -> None:
        if self._shown and not event.app.is_done:
            event.app.exit(result=Chosen(action, self._shown[self._place].value))


def _with_words(words: Sequence[str], choices: Sequence[Choice[Value]]) -> list[Choice[Value]]:
    return [each for each in choices if all(word in each.text.casefold() for word in words)]
