"""Markdown for terminals: safe, quiet, and good to copy.

Code stands at column 0, wherever in the text it was, and its long lines are left to the terminal:
what is copied is what was said. Line breaks are kept. Nothing ends in blanks.

Importing this costs as much as all other screens together: it is done when there is an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from app.view.highlighting import highlighted
from app.view.markdown_stream import parser
from app.view.plain import plain
from app.view.wrapping import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult

    Line: TypeAlias = Sequence[Segment]

_LONGEST = 100_000
"""Characters that are looked at for Markdown: more is shown as it is, and nobody waits for it."""

_WIDEST_RULE = 40
_CELLS_PER_COLUMN = 4
_BULLET, _QUOTE = "• ", "▌ "
_SPANS = {"strong_open": "bold", "em_open": "italic", "s_open": "strike", "link_open": "underline"}


class Markdown:
    """Renders *text* as lines for people.

    Text is made plain again after parsing, for entities like ``&#x202e;`` become characters only
    then; the targets of links are shown, not hidden behind their text; HTML is text.
    """

    def __init__(self, text: str) -> None:
        self._text = plain(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the lines."""
        if len(self._text) > _LONGEST:
            lines: Iterator[Line] = iter([Segment(line)] for line in self._text.split("\n"))
        else:
            lines = _Renderer(console, options, self._text).lines()
        for line in lines:
            yield from line
            yield Segment.line()


class _Container(NamedTuple):
    """A list's item or a quote: what stands before its first line, and before the others."""

    first: str
    others: str


class _List:
    """A list: the number of its next item, if it has numbers, and whether its items are spaced."""

    def __init__(self, number: int | None) -> None:
        self.number = number
        self.is_spaced = False

    def marker(self) -> str:
        """Return what stands before the next item."""
        if self.number is None:
            return _BULLET
        self.number += 1
        return f"{self.number - 1}. "


class _Renderer:
    """Goes through the tokens of one text, once, and makes lines of them."""

    def __init__(self, console: Console, options: ConsoleOptions, text: str) -> None:
        self._console, self._options = console, options
        self._source = text.split("\n")
        self._tokens = iter(parser().parse(text))
        self._containers: list[_Container] = []
        self._begun = 0  # of so many containers the first line is there
        self._lists: list[_List] = []
        self._has_begun = False
        self._is_gap = False  # a blank line comes before the next line
        self._heading = ""

    def lines(self) -> Iterator[Line]:
        """Yield the lines."""
        for token in self._tokens:
            match token.type:
                case "heading_open":
                    self._heading = "bold underline" if token.tag == "h1" else "bold"
                case "paragraph_open":
                    if self._lists and not token.hidden:
                        self._lists[-1].is_spaced = True
                case "paragraph_close" | "heading_close":
                    self._heading = ""
                    self._is_gap = not token.hidden
                case kind if kind.endswith("_open") and kind != "table_open":
                    self._enter(token)
                case kind if kind.endswith("_close"):
                    yield from self._leave(token)
                case _:
                    yield from self._block(token)

    def _enter(self, token: Token) -> None:
        """Go into a list, an item of one, or a quote."""
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                is_numbered = token.type == "ordered_list_open"
                self._is_gap &= not self._lists  # below the words of its item
                self._lists.append(_List(int(token.attrs.get("start", 1)) if is_numbered else None))
            case "list_item_open":
                marker = self._lists[-1].marker()
                self._containers.append(_Container(marker, " " * len(marker)))
            case "blockquote_open":
                self._containers.append(_Container(_QUOTE, _QUOTE))

    def _leave(self, token: Token) -> Iterator[Line]:
        """Come out of a list, an item of one, or a quote; show an empty one, too."""
        match token.type:
            case "list_item_close" | "blockquote_close":
                if self._begun < len(self._containers):
                    yield from self._line([])
                del self._containers[-1]
                self._begun = min(self._begun, len(self._containers))
                self._is_gap |= token.type == "blockquote_close"
            case "bullet_list_close" | "ordered_list_close":
                del self._lists[-1]
                self._is_gap = not self._lists or self._lists[-1].is_spaced

    def _block(self, token: Token) -> Iterator[Line]:
        """Yield the lines of what has text of its own."""
        match token.type:
            case "inline":
                text = _inline(token)
                text.stylize(self._heading)
                yield from self._paragraph(text)
                return
            case "fence" | "code_block":
                yield from self._code(token)
            case "hr":
                room = min(self._room(), _WIDEST_RULE)
                yield from self._paragraph(Text("─" * room, style="dim"))
            case "html_block":
                yield from self._paragraph(Text(plain(token.content).strip("\n")))
            case "table_open":
                yield from self._table(token)
        self._is_gap = not self._lists or self._lists[-1].is_spaced

    def _paragraph(self, text: Text) -> Iterator[Line]:
        for line in text.split("\n", allow_blank=True):
            for part in wrapped(line, self._room()):
                yield from self._line(list(part.render(self._console)))

    def _code(self, token: Token) -> Iterator[Line]:
        """Yield the lines of code, at column 0: the marker of an item has a line of its own."""
        yield from self._begin()
        code = plain(token.content).removesuffix("\n")
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        for line in highlighted(code, language).split("\n", allow_blank=True):
            yield list(line.render(self._console))

    def _table(self, opening: Token) -> Iterator[Line]:
        """Yield a table whose cells wrap; as it was written, if it has too many columns."""
        rows: list[list[Token]] = []
        justify: list[JustifyMethod] = []
        for token in self._tokens:
            if token.type == "table_close":
                break
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "th_open":
                justify.append("right" if "right" in str(token.attrGet("style")) else "left")
            elif token.type == "inline":
                rows[-1].append(token)
        if len(justify) * _CELLS_PER_COLUMN > self._room():
            first, last = opening.map or (0, 0)
            yield from self._paragraph(Text("\n".join(self._source[first:last])))
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, border_style="dim")
        for cell, side in zip(rows[0], justify, strict=True):
            table.add_column(_inline(cell), overflow="fold", justify=side)
        for row in rows[1:]:
            table.add_row(*map(_inline, row))
        options = self._options.update(width=self._room())
        for line in self._console.render_lines(table, options, pad=False):
            yield from self._line(_without_trailing_blanks(line))

    # -- where a line stands -------------------------------------------------------------------

    def _room(self) -> int:
        taken = min(sum(len(each.others) for each in self._containers), self._most_before())
        return self._options.max_width - taken

    def _most_before(self) -> int:
        """Return how many cells may stand before a line: text that nests deep must have room."""
        return self._options.max_width // 2

    def _line(self, segments: Line) -> Iterator[Line]:
        """Yield a line with what stands before it, after a blank one if it is time for that."""
        yield from self._gap()
        before = "".join(
            each.first if place >= self._begun else each.others
            for place, each in enumerate(self._containers)
        )[: self._most_before()]
        self._begun = len(self._containers)
        text = [*segments]
        if not text:
            before = before.rstrip(" ")
        yield [Segment(before), *text] if before else text

    def _begin(self) -> Iterator[Line]:
        """Yield the markers of what has just begun, for something that stands at column 0."""
        if self._begun < len(self._containers):
            yield from self._line([])
        else:
            yield from self._gap()

    def _gap(self) -> Iterator[Line]:
        if self._is_gap and self._has_begun:
            quotes = [each.others for each in self._containers[: self._begun]]
            before = "".join(quotes)[: self._most_before()].rstrip(" ")
            yield [Segment(before)] if before else []
        self._is_gap, self._has_begun = False, True


def _inline(token: Token) -> Text:
    """Return the text of a paragraph, a heading or a cell, with its line breaks."""
    text = Text()
    opened: list[tuple[str, int, str]] = []
    for child in token.children or []:
        match child.type:
            case "softbreak" | "hardbreak":
                text.append("\n")
            case "code_inline":
                text.append(plain(child.content), style="code")
            case "image":
                text.append(f"[{plain(child.content)}]")
                text.append(f" ({_target(child, 'src')})", style="dim")
            case kind if kind in _SPANS:
                opened.append((_SPANS[kind], len(text), _target(child, "href")))
            case kind if kind.endswith("_close") and opened:
                style, begin, target = opened.pop()
                text.stylize(style, begin)
                if target and text.plain[begin:] != target:
                    text.append(f" ({target})", style="dim")
            case _:
                text.append(plain(child.content))
    return text


def _target(token: Token, name: str) -> str:
    return plain(str(token.attrGet(name) or ""))


def _without_trailing_blanks(line: Line) -> Line:
    while line and not line[-1].text.strip(" "):
        line = line[:-1]
    if line:
        last = line[-1]
        line = [*line[:-1], Segment(last.text.rstrip(" "), last.style or Style())]
    return line
