"""Markdown for terminals: safe and quiet.

Importing this costs as much as all other screens together: it is done when there is an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich import box
from rich.markdown import (
    BlockQuote,
    CodeBlock,
    Heading,
    HorizontalRule,
    MarkdownElement,
    Paragraph,
    TableElement,
)
from rich.markdown import Markdown as RichMarkdown
from rich.padding import Padding
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from app.repl.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult

_CODE_THEME = "ansi_dark"  # the terminal's own sixteen colours, no background
_CODE_INDENT = (0, 0, 0, 2)


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _CodeBlock(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Padding(
            Syntax(
                code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default"
            ),
            _CODE_INDENT,
        )


class _Rule(HorizontalRule):
    new_line = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * min(options.max_width, 40), style="dim")


class _Html(Paragraph):
    """Raw HTML, shown as it is: what a model says is never left out."""

    def on_text(self, context: object, text: object) -> None:  # noqa: ARG002 - rich says so
        self.text.append(str(text).rstrip("\n"))


class _Table(TableElement):
    """A table whose cells wrap instead of being cut."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, border_style="dim")
        if self.header is not None and self.header.row is not None:
            for cell in self.header.row.cells:
                table.add_column(cell.content, overflow="fold")
        for row in self.body.rows if self.body is not None else ():
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class Markdown(RichMarkdown):
    """Markdown without surprises.

    Text is made plain again after parsing, for entities like ``&#x202e;`` become characters only
    then; the targets of links are shown, not hidden behind their text; headings stand left; HTML
    is text; nothing begins or ends with blanks.
    """

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **RichMarkdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
        "hr": _Rule,
        "html_block": _Html,
        "table_open": _Table,
        "blockquote_open": BlockQuote,
    }

    def __init__(self, text: str) -> None:
        super().__init__(plain(text), code_theme=_CODE_THEME, hyperlinks=False)
        _clean(self.parsed)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = super().__rich_console__(console, options)
        segments = (part for part in parts if isinstance(part, Segment))
        lines = [_without_trailing_blanks(line) for line in Segment.split_lines(segments)]
        while lines and not lines[0]:
            del lines[0]
        while lines and not lines[-1]:
            del lines[-1]
        for line in lines:
            yield from line
            yield Segment.line()


def _clean(tokens: Iterable[Token]) -> None:
    for token in tokens:
        token.content = plain(token.content)
        if token.type == "html_inline":
            token.type = "text"
        for name, value in token.attrs.items():
            if isinstance(value, str):
                token.attrs[name] = plain(value)
        token.children = _without_doubled_links(token.children or [])
        _clean(token.children)


def _without_doubled_links(tokens: list[Token]) -> list[Token]:
    """Return *tokens* without the links whose text is their target: it would be shown twice."""
    left_out: set[int] = set()
    for place in range(len(tokens) - 2):
        opening, text, closing = tokens[place : place + 3]
        kinds = [opening.type, text.type, closing.type]
        if kinds == ["link_open", "text", "link_close"]:
            left_out |= {place, place + 2} if text.content == opening.attrs["href"] else set()
    return [token for place, token in enumerate(tokens) if place not in left_out]


def _without_trailing_blanks(line: list[Segment]) -> list[Segment]:
    while line and not line[-1].text.strip(" "):
        line = line[:-1]
    if line:
        last = line[-1]
        line = [*line[:-1], Segment(last.text.rstrip(" "), last.style)]
    return line
