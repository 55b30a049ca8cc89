"""Code with colours: its characters stay as they are, tabs and blanks at the end of a line too."""

from __future__ import annotations

from typing import Any

from pygments.lexers import get_lexer_by_name
from pygments.token import Token
from pygments.util import ClassNotFound
from rich.text import Text

_LONGEST = 20_000
"""Characters of code that are coloured: beyond that nobody should wait for it."""

_STYLES = {
    Token.Comment: "code.comment",
    Token.Keyword: "code.keyword",
    Token.Operator.Word: "code.keyword",
    Token.Name.Function: "code.name",
    Token.Name.Class: "code.name",
    Token.Name.Tag: "code.keyword",
    Token.Literal.String: "code.string",
    Token.Literal.Number: "code.number",
    Token.Generic.Deleted: "code.deleted",
    Token.Generic.Inserted: "code.inserted",
    Token.Generic.Heading: "code.name",
    Token.Generic.Subheading: "code.name",
}


def highlighted(code: str, language: str) -> Text:
    """Return *code* coloured as *language*; as it is, if nothing knows that language."""
    if not language or len(code) > _LONGEST:
        return Text(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return Text(code)
    text = Text()
    for kind, part in lexer.get_tokens(code):
        text.append(part, style=_style(kind))
    return text if text.plain == code else Text(code)


def _style(kind: Any) -> str:
    """Return the style of a kind of token: its own, or that of the kind it belongs to."""
    return next((_STYLES[each] for each in reversed(kind.split()) if each in _STYLES), "")
