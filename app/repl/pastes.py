"""Pastes: a long one is one character in the line, shown as a label; and where a paste ends.

A terminal says where a paste begins and ends; what is pasted may hold the same marks, to have its
rest taken for keys. Nobody types between two pastes that come in one piece, so all of it is one.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from app.i18n import _
from domain.text import valid

if TYPE_CHECKING:
    from collections import deque

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.formatted_text import StyleAndTextTuples

_MOST_LINES, _MOST_CHARACTERS = 10, 1_000
"""What of a paste is shown as it is."""
_PRIVATE_USE = 0xF0000
_END_MARK = "\x1b[201~"


class Pastes(Processor):
    """The long pastes of one prompt; shows the characters that stand for them.

    Attributes:
        have_brackets: Whether one of any length came in brackets, since this was last set.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self.have_brackets = False

    def forget(self) -> None:
        """Begin a new prompt."""
        self._texts.clear()

    def folded(self, pasted: str, line: str) -> str:
        """Return what is to stand in *line* for what was *pasted*: itself, or a character."""
        if pasted.count("\n") < _MOST_LINES and len(pasted) <= _MOST_CHARACTERS:
            return pasted
        code = _PRIVATE_USE
        while chr(code) in self._texts or chr(code) in line:
            code += 1
        self._texts[chr(code)] = pasted
        return chr(code)

    def expanded(self, line: str) -> str:
        """Return *line* with all that was pasted."""
        return "".join(self._texts.get(character, character) for character in line)

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Show a label for each character that stands for a paste."""
        if not self._texts:
            return Transformation(transformation_input.fragments)
        shown: StyleAndTextTuples = []
        columns = [0]  # where each character of the line stands on the screen
        for style, character, *_rest in explode_text_fragments(transformation_input.fragments):
            is_paste = character in self._texts
            text = _label(self._texts[character]) if is_paste else character
            shown.append((f"{style} class:paste" if is_paste else style, text))
            columns.append(columns[-1] + len(text))

        def column_of(place: int) -> int:
            return columns[min(place, len(columns) - 1)]

        def place_of(column: int) -> int:
            return bisect_right(columns, column) - 1

        return Transformation(shown, source_to_display=column_of, display_to_source=place_of)


def line_keys(line: Buffer, pastes: Pastes) -> KeyBindings:
    """Return the keys that do the same to *line* at the prompt and while the agent works."""
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add(Keys.BracketedPaste)
    def paste(event: KeyPressEvent) -> None:
        pastes.have_brackets = True
        [press] = event.key_sequence
        pasted = pasted_text(press, event.key_processor.input_queue)
        buffer = event.current_buffer
        buffer.insert_text(pastes.folded(pasted, buffer.text) if buffer is line else pasted)

    @keys.add("enter", filter=Condition(lambda: _is_choosing_a_file(line)) & ~is_searching)
    def choose(_event: KeyPressEvent) -> None:
        line.complete_state = None  # it is chosen; the prompt goes on

    @keys.add("c-o", filter=Condition(lambda: pastes.expanded(line.text) != line.text))
    def unfold(_event: KeyPressEvent) -> None:
        line.document = Document(pastes.expanded(line.text))

    return keys


def _is_choosing_a_file(line: Buffer) -> bool:
    """Whether Enter ends the choice of a file in the menu, not the prompt."""
    state = line.complete_state
    is_chosen = state is not None and state.current_completion is not None
    return is_chosen and not line.text.startswith("/")


def _label(pasted: str) -> str:
    lines = pasted.count("\n") + (not pasted.endswith("\n"))
    if lines > 1:
        return _("[pasted {lines:,} lines]").format(lines=lines)
    return _("[pasted {characters:,} characters]").format(characters=len(pasted))


def pasted_text(press: KeyPress, waiting: deque[KeyPress]) -> str:
    """Return all of a paste: *press* and what of the keys *waiting* behind it is in it, too."""
    last = max((n for n in range(len(waiting)) if _ends_paste(waiting, n)), default=-1)
    rest = "".join(waiting.popleft().data for _ in range(last + 1))
    text = press.data + rest.replace(_END_MARK, "")
    return valid(text.replace("\r\n", "\n").replace("\r", "\n"))


def _ends_paste(waiting: deque[KeyPress], last: int) -> bool:
    """Whether a paste ends with the key *last*: it is one, or the mark of an end."""
    if waiting[last].key == Keys.BracketedPaste:
        return True
    first = last + 1 - len(_END_MARK)
    marks = [waiting[n].data for n in range(max(first, 0), last + 1)]
    return "".join(marks) == _END_MARK
