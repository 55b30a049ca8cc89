"""What all commands have in common: they check, then trigger an event, and change nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from domain import events
from domain.fold import Fold
from domain.seals import sealed
from domain.text import valid, valid_json

if TYPE_CHECKING:
    from domain.events import Entry, Version


class Commands(Fold):
    """Triggers events: whole, valid, with the time, and with a seal where one is needed."""

    Event = events.Event

    def _append(self, event_class: type[Entry], **body: Any) -> None:
        self._trigger(event_class, parent=self.leaf, **body)

    def _trigger(self, event_class: type[Any], *, with_seal: bool = False, **body: Any) -> None:
        """Trigger an event, now, all text in it made valid; a seal shows that it is from here."""
        body = {"timestamp": self.clock()} | {key: _valid(item) for key, item in body.items()}
        if with_seal:
            place = {"originator_id": self.id, "originator_version": self.version + 1}
            body["seal"] = sealed(event_class(**place, **body), self.seals).seal
        self.trigger_event(event_class, **body)

    def _require_entry(self, target: Version | None) -> None:
        if target is not None:
            self.entry(target)


def _valid(item: Any) -> Any:
    if isinstance(item, str):
        return valid(item)
    return valid_json(item) if isinstance(item, dict) else item


def raw_json(value: Any) -> msgspec.Raw:
    """Return *value* as undecoded JSON, all text in it made valid."""
    return msgspec.Raw(msgspec.json.encode(valid_json(value)))
