"""Plain messages: what goes to the model just as it stands in the log, and need not be decoded.

A message is plain if nothing in it has to be changed, left out or looked at more closely, and if
its bytes are those that our encoder makes of it. That is not taken on trust: its structure is read
in one pass, with texts left as they are, and encoded again. What comes out must be the same bytes.
So a repeated key, blanks between tokens, another order of keys, an escaped name, a number out of
range or a byte that is no UTF-8 are never passed on, whoever wrote them and whatever the checksum.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from domain.block_shapes import is_name

_BEFORE_BLOCKS = len(b'{"role":"user","content":[')
_SAYS = re.compile(rb'"[!#-\[\]-~\xc3-\xe0\xe4-\xf4]').match
"""Strings that begin with a character which, as its first byte tells, is no blank."""
_LIST = re.compile(rb"\[").match
_STRING = re.compile(rb'"').match
_SIGNED = re.compile(rb'"[^"]').match
_ATOM = re.compile(rb'["tfn]').match
"""Strings, true, false and null: there is one way to write them, but for what strings hold."""


class Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    """A text."""

    text: Raw

    @property
    def is_plain(self) -> bool:
        """Whether it says something."""
        return _says(self.text)


class Result(Struct, tag_field="type", tag="tool_result", forbid_unknown_fields=True, gc=False):
    """The result of a call: a text, or several."""

    tool_use_id: str
    content: Raw
    is_error: bool | UnsetType = UNSET

    @property
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

    @property
    def is_plain(self) -> bool:
        """Whether it is well named, and its input as we write it."""
        is_named = is_name(self.id) and is_name(self.name)
        return is_named and all(map(_is_ours, self.input.values()))


class Thinking(Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True, gc=False):
    """Thinking, signed."""

    thinking: Raw
    signature: Raw

    @property
    def is_plain(self) -> bool:
        """Whether both are texts, and it is signed."""
        return _STRING(self.thinking) is not None and _SIGNED(self.signature) is not None


class UserMessage(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    """What the user says: texts, or one result."""

    content: list[Text | Result]

    @property
    def is_plain(self) -> bool:
        """Whether it can be passed on as it is."""
        content = self.content
        is_kind = len(content) == 1 or all(isinstance(block, Text) for block in content)
        return is_kind and bool(content) and all(block.is_plain for block in content)


class Answer(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    """What the model says."""

    content: list[Text | Call | Thinking]

    @property
    def is_plain(self) -> bool:
        """Whether it can be passed on as it is. The API takes none that ends in thinking."""
        content = self.content
        if not content or isinstance(content[-1], Thinking):
            return False
        return all(block.is_plain for block in content)

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
_encode = msgspec.json.encode


def plain(message: Raw) -> PlainMessage | None:
    """Return the structure of *message* if it is plain, else None."""
    try:
        body = bytes(message)
        body.decode()  # what is left raw was not checked for this
        found = _decode(body)
        return found if found.is_plain and _encode(found) == body else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def inside(message: Raw) -> bytes:
    """Return the blocks of a plain *message* of the user, without what is around them."""
    return memoryview(message)[_BEFORE_BLOCKS:-2]  # type: ignore[return-value] # joined, as bytes


def _says(raw: Raw) -> bool:
    """Whether *raw* is a text that is not blank; most show that in their first byte."""
    if _SAYS(raw):
        return True
    text = msgspec.json.decode(raw)
    return isinstance(text, str) and text.strip() != ""


def _are_texts(raw: Raw) -> bool:
    """Whether *raw* is a list of texts, each of which says something, as we write it."""
    texts = _decode_texts(raw)
    is_plain = bool(texts) and all(text.is_plain for text in texts)
    return is_plain and _encode(texts) == bytes(raw)


def _is_ours(raw: Raw) -> bool:
    """Whether our encoder writes the value *raw* like this."""
    return _ATOM(raw) is not None or _encode(msgspec.json.decode(raw)) == bytes(raw)
