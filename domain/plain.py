"""Plain messages: what goes to the model just as it stands in the log, and need not be decoded.

A message is plain if nothing in it has to be changed, left out or looked at more closely, and if
its bytes are those that our encoder makes of it. That is not taken on trust: its structure is read
in one pass, with texts left as they are, and encoded again. What comes out must be the same bytes.
So a repeated key, blanks between tokens, another order of keys, an escaped name, a number out of
range or a byte that is no UTF-8 are never passed on, whoever wrote them and whatever the checksum.
Messages are looked at in groups; only in a group with one that is not plain, one by one.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from domain.block_shapes import NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

NOT_PLAIN: Final = 0
"""The kind of a message that has to be decoded."""
TEXTS: Final = 1
"""Texts of the user."""
RESULT: Final = 2
"""The result of one call."""
ANSWER: Final = 3
"""What the model says."""
THINKS: Final = 4
"""Added to an answer with thinking in it."""
THINKS_FIRST: Final = 8
"""Added to an answer that begins with thinking."""
ROUND: Final = 16
"""Added to an answer with which a round begins that is just as the API has them: all its calls are
answered in order, the user may say more, and the next answer follows."""

CUT_SHORT: Final = ("interrupted", "failed")
"""Why an answer ended that is never passed on as it stands: the user says that it was cut short."""

_GROUP: Final = 32
_NO_CALLS: Final[tuple[str, ...]] = ()
USER: Final = b'{"role":"user","content":['
USER_END: Final = b"]}"
"""What is around the blocks of a message of the user."""
INSIDE: Final = slice(len(USER), -len(USER_END))
"""Where in a plain one its blocks are."""
_SAYS = re.compile(rb'"[!#-\[\]-~\xc3-\xe0\xe4-\xf4]').match
"""Strings that begin with a character which, as its first byte tells, is no blank."""
_ROUND = re.compile(rb"[\x03\x07\x0f](?=[\x01\x02])(\x02*)\x01*(?=[\x03\x07\x0f])")
"""What may be one, by the kinds of its messages."""
_NAME = NAME.fullmatch
_LIST = re.compile(rb"\[").match
_STRING = re.compile(rb'"').match
_SIGNED = re.compile(rb'"[^"]').match


class Shapes(NamedTuple):
    """How messages are passed on: the kind of each, and the *ids* of its calls, or of its call."""

    kinds: bytes
    ids: Sequence[tuple[str, ...]]


class Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    """A text."""

    text: Raw


class Result(Struct, tag_field="type", tag="tool_result", forbid_unknown_fields=True, gc=False):
    """The result of a call: a text, or several."""

    tool_use_id: str
    content: Raw
    is_error: bool | UnsetType = UNSET


class Call(Struct, tag_field="type", tag="tool_use", forbid_unknown_fields=True, gc=False):
    """A call."""

    id: str
    name: str
    input: dict[str, Any]


class Thinking(Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True, gc=False):
    """Thinking, signed."""

    thinking: Raw
    signature: Raw


class UserMessage(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    """What the user says: texts, or one result."""

    content: list[Text | Result]


class Answer(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    """What the model says."""

    content: list[Text | Call | Thinking]


class _NotPlainError(Exception):
    """Something in a group of messages has to be looked at more closely."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[UserMessage | Answer]).decode
_decode_texts = msgspec.json.Decoder(list[list[Text]]).decode
_REFUSED = (msgspec.MsgspecError, UnicodeError, RecursionError, _NotPlainError)


def shapes(bodies: Sequence[bytes], stop_reasons: Sequence[str | None]) -> Shapes:
    """Return the shapes of messages: of their *bodies*, each a JSON value, and why each ended."""
    kinds = bytearray()
    ids: list[tuple[str, ...]] = []
    for first in range(0, len(bodies), _GROUP):
        of_group = _of_group(bodies[first : first + _GROUP])
        kinds += of_group.kinds
        ids += of_group.ids
    if not set(stop_reasons).isdisjoint(CUT_SHORT):
        for place, why in enumerate(stop_reasons):
            if why in CUT_SHORT:
                kinds[place] = NOT_PLAIN
    for match in _ROUND.finditer(bytes(kinds)):
        place = match.start()
        if ids[place] == tuple(chain(*ids[place + 1 : match.end(1)])):
            kinds[place] |= ROUND
    return Shapes(bytes(kinds), ids)


def _of_group(bodies: Sequence[bytes]) -> Shapes:
    """Return the shapes of *bodies*, each of which may be plain or not."""
    try:
        return _of_plain(bodies)
    except _REFUSED:
        if len(bodies) == 1:
            return Shapes(bytes([NOT_PLAIN]), [()])
    alone = [_of_group([body]) for body in bodies]
    return Shapes(b"".join([each.kinds for each in alone]), [each.ids[0] for each in alone])


def _of_plain(bodies: Sequence[bytes]) -> Shapes:
    """Return the shapes of *bodies*, which all are plain.

    Raises:
        _NotPlainError: one is not; or an error of those that tell the same.
    """
    messages: list[UserMessage | Answer] = _as_we_write(_decode, bodies)
    if len(messages) != len(bodies):
        raise _NotPlainError
    kinds = bytearray()
    ids: list[tuple[str, ...]] = []
    texts: list[Raw] = []
    lists: list[Raw] = []
    names: list[str] = []
    for message in messages:
        content, calls = message.content, _NO_CALLS
        block = content[0] if len(content) == 1 else None
        if type(block) is Text:  # most messages are this, or the next
            kind = TEXTS if type(message) is UserMessage else ANSWER
            texts.append(block.text)
        elif type(block) is Result:
            kind, calls = RESULT, (block.tool_use_id,)
            if block.is_error is False:  # that goes without saying
                raise _NotPlainError
            (lists if _LIST(block.content) else texts).append(block.content)
        else:
            kind, calls = _of_blocks(message, texts, names)
        kinds.append(kind)
        ids.append(calls)
    if lists:
        texts += _texts_in(lists)
    if not all(map(_NAME, names)) or not (all(map(_SAYS, texts)) or all(map(_says, texts))):
        raise _NotPlainError
    return Shapes(bytes(kinds), ids)


def _of_blocks(
    message: UserMessage | Answer, texts: list[Raw], names: list[str]
) -> tuple[int, tuple[str, ...]]:
    """Return kind and ids of *message*; add *texts* that have to say things, and *names*.

    Raises:
        _NotPlainError: it is not plain, or the API does not take it: there is nothing in it, or it
            ends in thinking.
    """
    kind, ids = ANSWER if type(message) is Answer else TEXTS, _NO_CALLS
    block: Text | Result | Call | Thinking | None = None
    for block in message.content:
        if type(block) is Text:
            texts.append(block.text)
        elif type(block) is Call:
            names += (block.id, block.name)
            ids += (block.id,)
        elif type(block) is Thinking and _STRING(block.thinking) and _SIGNED(block.signature):
            kind |= THINKS | THINKS_FIRST if block is message.content[0] else THINKS
        else:
            raise _NotPlainError
    if block is None or type(block) is Thinking or len(set(ids)) < len(ids):
        raise _NotPlainError
    return kind, ids


def _texts_in(lists: Sequence[Raw]) -> list[Raw]:
    """Return the texts of *lists*, each of which has some, and nothing else.

    Raises:
        _NotPlainError: one has not; or an error of those that tell the same.
    """
    decoded: list[list[Text]] = _as_we_write(_decode_texts, lists)
    if not all(decoded):
        raise _NotPlainError
    return [block.text for blocks in decoded for block in blocks]


def _says(text: Raw) -> bool:
    """Whether *text* is one that is not blank; most show that in their first byte."""
    if _SAYS(text) is not None:
        return True
    says = msgspec.json.decode(text)
    return isinstance(says, str) and says.strip() != ""


def _as_we_write(decode: Any, values: Sequence[bytes]) -> Any:
    """Return the *values* decoded, a list, if encoded again they are what they were.

    Raises:
        _NotPlainError: they are not.
    """
    data = b"[%b]" % b",".join(values)
    if not data.isascii():
        data.decode()  # what is left raw is not checked for this
    decoded = decode(data)
    if _encode(decoded) != data:
        raise _NotPlainError
    return decoded
