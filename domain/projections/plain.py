"""Plain messages: what goes to the model just as it stands in the log, and need not be decoded.

A message is plain if nothing in it has to be changed, left out or looked at more closely, and if
its bytes are those that our encoder makes of it. That is not taken on trust: its structure is read
in one pass, with texts left as they are, and encoded again. What comes out must be the same bytes.
So a repeated key, blanks between tokens, another order of keys, an escaped name, a number out of
range or a byte that is no UTF-8 are never passed on, whoever wrote them and whatever the checksum.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from domain.block_shapes import is_name

if TYPE_CHECKING:
    from collections.abc import Sequence

_BEFORE_BLOCKS = len(b'{"role":"user","content":[')
_SAYS = re.compile(rb'"[!#-\[\]-~\xc3-\xe0\xe4-\xf4]').match
"""Strings that begin with a character which, as its first byte tells, is no blank."""
_LIST = re.compile(rb"\[").match
_STRING = re.compile(rb'"').match
_SIGNED = re.compile(rb'"[^"]').match
_ATOM = re.compile(rb'["tfn]|(?:0|-?[1-9][0-9]{0,14})\Z').match
"""What there is one way to write, but for what strings hold: also true, false, null, integers."""


class Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    """A text."""

    text: Raw

    def is_plain(self) -> bool:
        """Whether it says something."""
        return _SAYS(self.text) is not None or _says(self.text)


class Result(Struct, tag_field="type", tag="tool_result", forbid_unknown_fields=True, gc=False):
    """The result of a call: a text, or several."""

    tool_use_id: str
    content: Raw
    is_error: bool | UnsetType = UNSET

    def is_plain(self) -> bool:
        """Whether it says something; that it is no error goes without saying."""
        if self.is_error is False:
            return False
        return _are_texts(self.content) if _LIST(self.content) else _says(self.content)


class Call(Struct, tag_field="type", tag="tool_use", forbid_unknown_fields=True, gc=False):
    """A call."""

    id: str
    name: str
    input: dict[str, Raw]

    def is_plain(self) -> bool:
        """Whether it is well named, and its input as we write it."""
        if not is_name(self.id) or not is_name(self.name):
            return False
        values = self.input.values()
        return all(map(_ATOM, values)) or all(map(_is_ours, values))


class Thinking(Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True, gc=False):
    """Thinking, signed."""

    thinking: Raw
    signature: Raw

    def is_plain(self) -> bool:
        """Whether both are texts, and it is signed."""
        return _STRING(self.thinking) is not None and _SIGNED(self.signature) is not None


class UserMessage(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    """What the user says: texts, or one result."""

    content: list[Text | Result]

    def is_plain(self) -> bool:
        """Whether it can be passed on."""
        content = self.content
        if len(content) == 1:
            return content[0].is_plain()
        return bool(content) and all(type(each) is Text and each.is_plain() for each in content)


class Answer(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    """What the model says."""

    content: list[Text | Call | Thinking]

    def is_plain(self) -> bool:
        """Whether it can be passed on: the API takes none of nothing, or that ends in thinking."""
        for block in self.content:
            if not block.is_plain():
                return False
        return bool(self.content) and type(self.content[-1]) is not Thinking

    @property
    def thinks(self) -> bool:
        """Whether there is thinking in it."""
        return any(isinstance(block, Thinking) for block in self.content)

    @property
    def thinks_first(self) -> bool:
        """Whether it begins with thinking."""
        return isinstance(self.content[0], Thinking)

    @property
    def call_ids(self) -> list[str]:
        """The ids of its calls, in order."""
        return [block.id for block in self.content if isinstance(block, Call)]


PlainMessage: TypeAlias = UserMessage | Answer

_decode = msgspec.json.Decoder(UserMessage | Answer).decode
_decode_texts = msgspec.json.Decoder(list[Text]).decode
_encode = msgspec.json.Encoder().encode


def plain(message: Raw) -> PlainMessage | None:
    """Return the structure of *message* if it is plain, else None."""
    try:
        body = bytes(message)
        body.decode()  # what is left raw was not checked for this
        found = _decode(body)
        return found if _encode(found) == body and found.is_plain() else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def inside(message: Raw) -> bytes:
    """Return the blocks of a plain *message* of the user, without what is around them."""
    return memoryview(message)[_BEFORE_BLOCKS:-2]  # type: ignore[return-value] # for `as_message`


def as_message(blocks: Sequence[bytes]) -> bytes:
    """Return the message in which the user says *blocks*."""
    if len(blocks) == 1 and isinstance(blocks[0], memoryview):
        return cast("Raw", blocks[0].obj)  # it stands in the log as it is
    return b'{"role":"user","content":[%b]}' % b",".join(blocks)


def _says(raw: Raw) -> bool:
    """Whether *raw* is a text that is not blank; most show that in their first byte."""
    if _SAYS(raw) is not None:
        return True
    text = msgspec.json.decode(raw)
    return isinstance(text, str) and text.strip() != ""


def _are_texts(raw: Raw) -> bool:
    """Whether *raw* is a list of texts, each of which says something, as we write it."""
    texts = _decode_texts(raw)
    if not texts or _encode(texts) != bytes(raw):
        return False
    return all(text.is_plain() for text in texts)


def _is_ours(raw: Raw) -> bool:
    """Whether our encoder writes the value *raw* like this."""
    return _ATOM(raw) is not None or _encode(msgspec.json.decode(raw)) == bytes(raw)
