"""Domain events ↔ stored events: topics, upcasting, laziness, and nothing by import.

Only topics of the closed registry are resolved (a log is data: opening one runs nothing). What
cannot be read, a newer topic or a state of another shape, becomes an `Unrecognised` event that
keeps its bytes. Works over every persistence module, with the library's ciphers and compressors.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import msgspec
from eventsourcing.persistence import Cipher, Compressor, Mapper, StoredEvent, Transcoder

from domain.events import TOPICS, UNSET_ID, Event, MessageAppended, Unrecognised
from domain.snapshot import ConversationSnapshot
from domain.text import decoded, rewritten
from domain.upcasts import UPCASTS, Upcast
from infrastructure.errors import LockedStateError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eventsourcing.domain import DomainEventProtocol


class ConversationMapper(Mapper[UUID]):
    """The mapper of conversations."""

    def __init__(
        self,
        transcoder: Transcoder,
        compressor: Compressor | None = None,
        cipher: Cipher | None = None,
        topics: Mapping[str, type[Event]] = TOPICS,
        upcasts: Mapping[tuple[str, int], Upcast] = UPCASTS,
    ) -> None:
        super().__init__(transcoder, compressor, cipher)
        self._topics = topics
        self._upcasts = upcasts
        self._readers: dict[str, Callable[[bytes | msgspec.Raw], Event]] = {}

    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> StoredEvent:
        """Return *domain_event* with its state as JSON bytes, compressed and encrypted if asked."""
        event = cast("Event", domain_event)
        if isinstance(event, Unrecognised):
            topic, state = event.topic, event.state
        else:
            topic, state = event.TOPIC, _encode(event)
        return StoredEvent(
            event.originator_id, event.originator_version, topic, self._closed(state)
        )

    def opened(self, stored: StoredEvent) -> StoredEvent:
        """Return *stored* with its state as every module has it: decrypted and decompressed.

        Raises:
            LockedStateError: it cannot be.
        """
        try:
            state = self._opened(stored.state) if self._is_sealing else stored.state
        except _LockedError as error:
            raise LockedStateError(LOCKED) from error
        if _is_sealed(state):
            raise LockedStateError(LOCKED)
        return replace(stored, state=state)

    def closed(self, stored: StoredEvent) -> StoredEvent:
        """Return *stored*, which is as `opened` gives it, compressed and encrypted if asked."""
        return replace(stored, state=self._closed(stored.state))

    def _closed(self, state: bytes) -> bytes:
        if self.compressor:
            state = self.compressor.compress(state)
        if self.cipher:
            state = self.cipher.encrypt(state)
        return state

    def to_domain_event(self, stored_event: StoredEvent) -> Event:
        """Return the event; `Unrecognised` if its topic or its state cannot be read."""
        stored = stored_event
        originator_id = stored.originator_id
        if not isinstance(originator_id, UUID):
            originator_id = UUID(originator_id)
        return self.read(originator_id, stored.originator_version, stored.topic, stored.state)

    def read(
        self,
        originator_id: UUID,
        version: int,
        topic: str,
        state: bytes | msgspec.Raw,
        *,
        as_written: bool = False,
    ) -> Event:
        """Return the event of that topic and state; `Unrecognised` if it cannot be read.

        Unless the state is known to be *as_written*, by our own encoder, a message in it is written
        again: its bytes go to the model as they are.
        """
        event: Event
        try:
            if self._is_sealing:
                state = self._opened(bytes(state))
            read = self._readers.get(topic) or self._reader(topic)
            event = read(state) if read else _unrecognised(topic, state, f"unknown topic {topic!r}")
            if event.written_as > event.class_version:
                raise _NewerError
        except _LockedError:
            event = _unrecognised(topic, state, LOCKED)
        except _NewerError:
            event = _newer(topic, state)
        except _UNREADABLE as error:
            if _written_as(state) > self._topics[topic].class_version:
                event = _newer(topic, state)
            elif _is_sealed(state):
                event = _unrecognised(topic, state, LOCKED)
            else:
                event = _leniently(self._topics[topic], state) or _unrecognised(
                    topic, state, f"not a {topic}: {error}"
                )
        # The struct is frozen, but no other code has seen it yet.
        if isinstance(event, MessageAppended) and not as_written:
            _set(event, "message", rewritten(event.message))
        _set(event, "originator_id", originator_id)
        _set(event, "originator_version", version)
        return event

    @property
    def states(self) -> Mapping[str, type[Event]]:
        """What the states of each topic are, as far as they can be read without this mapper."""
        if self._is_sealing:
            return {}
        return {topic: event for topic, event in self._topics.items() if event.class_version == 1}

    @property
    def _is_sealing(self) -> bool:
        return self.cipher is not None or self.compressor is not None

    def _opened(self, state: bytes) -> bytes:
        """Return *state* decrypted and decompressed."""
        try:
            if self.cipher:
                state = self.cipher.decrypt(state)
            if self.compressor:
                state = self.compressor.decompress(state)
        except Exception as error:  # each cipher and compressor has errors of its own
            raise _LockedError from error
        return state

    def _reader(self, topic: str) -> Callable[[bytes | msgspec.Raw], Event] | None:
        """Return what reads states of *topic*, made when the first one comes; None if unknown."""
        event_class = self._topics.get(topic)
        if event_class is None:
            return None
        read = _decoder(event_class).decode
        if event_class.class_version > 1:
            self._readers[topic] = lambda state: read(self._upcast(event_class, state))
        else:
            self._readers[topic] = read
        return self._readers[topic]

    def _upcast(self, event_class: type[Event], state: bytes | msgspec.Raw) -> bytes:
        content: dict[str, Any] = dict(decoded(state))
        written_as = content.pop("class_version", 1)
        if written_as > event_class.class_version:
            raise _NewerError
        for version in range(written_as, event_class.class_version):
            content = self._upcasts[event_class.TOPIC, version](content)
        return msgspec.json.encode(content)


class SnapshotMapper(ConversationMapper):
    """The mapper of snapshots; what is no snapshot of this version becomes `Unrecognised`."""

    def __init__(
        self,
        transcoder: Transcoder,
        compressor: Compressor | None = None,
        cipher: Cipher | None = None,
    ) -> None:
        topics = {ConversationSnapshot.TOPIC: ConversationSnapshot}
        super().__init__(transcoder, compressor, cipher, topics)


class _NewerError(Exception):
    """An event whose topic says something else in a newer version of this program."""


class _LockedError(Exception):
    """A state that cannot be decrypted or decompressed."""


LOCKED = "cannot be decrypted or decompressed: another CIPHER_KEY or COMPRESSOR_TOPIC, or damage"

_set = msgspec.structs.force_setattr

_UNREADABLE = (
    msgspec.MsgspecError, UnicodeError, RecursionError,
    LookupError, TypeError, ValueError, AttributeError,  # an upcast of a state of another shape
)  # fmt: skip


def _leniently(event_class: type[Event], state: bytes | msgspec.Raw) -> Event | None:
    """Return the event of a state that strict parsers refuse (escaped lone surrogates, NaN)."""
    if event_class.class_version > 1:
        return None
    try:
        return _decoder(event_class).decode(msgspec.json.encode(decoded(state)))
    except _UNREADABLE:
        return None


@lru_cache
def _decoder(event_class: type[Event]) -> msgspec.json.Decoder[Event]:
    return msgspec.json.Decoder(event_class)


def _encode(event: Event) -> bytes:
    # Who and which is in the stored event already; as defaults the two fields are left out.
    bare = msgspec.structs.replace(event, originator_id=UNSET_ID, originator_version=0)
    state = msgspec.json.encode(bare)
    if event.class_version > 1:
        content = msgspec.json.decode(state, type=dict[str, msgspec.Raw])
        state = msgspec.json.encode({**content, "class_version": event.class_version})
    return state


class _Timed(msgspec.Struct):
    timestamp: datetime


def _written_as(state: bytes | msgspec.Raw) -> int:
    """Return the version of a state that says one, also of one that strict parsers refuse."""
    match decoded(state):
        case {"class_version": int(version)}:
            return version
        case _:
            return 1


def _is_sealed(state: bytes | msgspec.Raw) -> bool:
    """Whether *state* has been through a cipher or a compressor: it does not begin as ours do."""
    return bytes(state)[:1] != b"{" and decoded(state) is None


def _newer(topic: str, state: bytes | msgspec.Raw) -> Unrecognised:
    reason = f"{topic} of version {_written_as(state)}, which is newer than this program"
    return _unrecognised(topic, state, reason, is_newer=True)


def _unrecognised(
    topic: str, state: bytes | msgspec.Raw, reason: str, *, is_newer: bool = False
) -> Unrecognised:
    try:
        timestamp = msgspec.json.decode(state, type=_Timed).timestamp
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        timestamp = datetime.fromtimestamp(0, UTC)
    return Unrecognised(
        timestamp=timestamp, topic=topic, state=bytes(state), reason=reason, is_newer=is_newer
    )
