"""Markdown for terminals: safe, quiet, and good to copy.

Code stands at column 0, wherever in the text it was, and its long lines are left to the terminal:
what is copied is what was said. Line breaks are kept. Nothing ends in blanks.

Importing this costs as much as all other screens together: it is done when there is an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from app.view.highlighting import highlighted
from app.view.markdown_stream import parser
from app.view.plain import plain
from app.view.wrapping import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult

_LONGEST = 100_000
"""Characters that are looked at for Markdown: more is shown as it is, and nobody waits for it."""

_WIDEST_RULE = 40
_CELLS_PER_COLUMN = 4
_BULLET, _QUOTE = "• ", "▌ "
_LISTS = ("bullet_list_open", "ordered_list_open")
_HEADINGS = {"h1": "bold underline"} | dict.fromkeys(("h2", "h3", "h4", "h5", "h6"), "bold")
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
            lines: Iterator[_Line] = (_Line([Segment(line)]) for line in self._text.split("\n"))
        else:
            blocks = _tree(parser().parse(self._text))
            lines = _Renderer(console, options, self._text).lines(blocks, 0)
        for line in lines:
            before = line.before[: options.max_width // 2]  # text that nests deep must have room
            yield Segment(before if line.segments else before.rstrip(" "))
            yield from line.segments
            yield Segment.line()


class _Line(NamedTuple):
    """A line, and what stands before it: markers of items and quotes, but nothing before code."""

    segments: Sequence[Segment] = ()
    before: str = ""
    is_code: bool = False


class _Block(NamedTuple):
    """A block, by the token that begins it, and the blocks in it."""

    token: Token
    children: list[_Block]


def _tree(tokens: Iterable[Token]) -> list[_Block]:
    """Return the blocks that *tokens* stand for. An inline token is one: it may nest any deep."""
    opened: list[list[_Block]] = [[]]
    for token in tokens:
        if token.nesting < 0:
            del opened[-1]
            continue
        block = _Block(token, [])
        opened[-1].append(block)
        if token.nesting > 0:
            opened.append(block.children)
    return opened[0]


class _Renderer:
    """Makes lines of the blocks of one text."""

    def __init__(self, console: Console, options: ConsoleOptions, text: str) -> None:
        self._console, self._options = console, options
        self._source = text.split("\n")

    def lines(
        self, blocks: Sequence[_Block], taken: int, *, is_item: bool = False, is_spaced: bool = True
    ) -> Iterator[_Line]:
        """Yield the lines of blocks behind *taken* cells, with blank ones between if *is_spaced*.

        A list in an item stands right below its words.
        """
        room = self._options.max_width - min(taken, self._options.max_width // 2)
        for place, block in enumerate(blocks):
            if place and is_spaced and not (is_item and block.token.type in _LISTS):
                yield _Line()
            yield from self._block(block, room, taken)

    def _block(self, block: _Block, room: int, taken: int) -> Iterator[_Line]:
        token, children = block
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                yield from self._list(block, taken)
            case "blockquote_open":
                yield from _behind(_QUOTE, _QUOTE, self.lines(children, taken + len(_QUOTE)))
            case "paragraph_open" | "heading_open":
                text = _inline(children[0].token)
                text.stylize(_HEADINGS.get(token.tag, ""))
                yield from self._paragraph(text, room)
            case "fence" | "code_block":
                yield from self._code(token)
            case "hr":
                yield from self._paragraph(Text("─" * min(room, _WIDEST_RULE), style="dim"), room)
            case "html_block":
                yield from self._paragraph(Text(plain(token.content).strip("\n")), room)
            case "table_open":
                yield from self._table(block, room)

    def _list(self, block: _Block, taken: int) -> Iterator[_Line]:
        words = [each.token for item in block.children for each in item.children]
        is_spaced = any(token.type == "paragraph_open" and not token.hidden for token in words)
        first = int(block.token.attrs.get("start", 1))
        for number, item in enumerate(block.children, first):
            if is_spaced and number > first:
                yield _Line()
            marker = f"{number}. " if block.token.type == "ordered_list_open" else _BULLET
            lines = self.lines(
                item.children, taken + len(marker), is_item=True, is_spaced=is_spaced
            )
            yield from _behind(marker, " " * len(marker), lines)

    def _paragraph(self, text: Text, room: int) -> Iterator[_Line]:
        for line in text.split("\n", allow_blank=True):
            for part in wrapped(line, room):
                yield _Line(list(part.render(self._console)))

    def _code(self, token: Token) -> Iterator[_Line]:
        code = plain(token.content).removesuffix("\n")
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        for line in highlighted(code, language).split("\n", allow_blank=True):
            yield _Line(list(line.render(self._console)), is_code=True)

    def _table(self, block: _Block, room: int) -> Iterator[_Line]:
        """Yield a table whose cells wrap; as it was written, if it has too many columns."""
        head, *rows = [row.children for part in block.children for row in part.children]
        if len(head) * _CELLS_PER_COLUMN > room:
            first, last = block.token.map or (0, 0)
            yield from self._paragraph(Text("\n".join(self._source[first:last])), room)
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, border_style="dim")
        for cell in head:
            is_right = "right" in str(cell.token.attrGet("style"))
            side: JustifyMethod = "right" if is_right else "left"
            table.add_column(_inline(cell.children[0].token), overflow="fold", justify=side)
        for row in rows:
            table.add_row(*(_inline(cell.children[0].token) for cell in row))
        options = self._options.update(width=room)
        for line in self._console.render_lines(table, options, pad=False):
            text = Text.assemble(*((each.text, each.style or "") for each in line))
            text.rstrip()
            yield _Line(list(text.render(self._console)))


def _behind(first: str, others: str, lines: Iterable[_Line]) -> Iterator[_Line]:
    """Yield *lines* behind *first* and, below it, *others*; where code begins, it stands alone."""
    is_first = True
    for line in lines:
        if line.is_code and is_first:
            yield _Line(before=first)
        if line.is_code:
            yield line
        else:
            yield line._replace(before=(first if is_first else others) + line.before)
        is_first = False
    if is_first:
        yield _Line(before=first)


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
