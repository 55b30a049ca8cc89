"""From the environment to recorders. The names and their defaults are documented here only.

======================= =================================================================
``LEFTFOLD_STORE``      The folder of the logs; default ``$LEFTFOLD_HOME/conversations``.
``LEFTFOLD_HOME``       Where Leftfold keeps its things; default ``~/.leftfold``.
``LEFTFOLD_DURABILITY`` ``fsync`` (default): a save returns when it is on the disk. ``os``: when the
                        operating system has it; what is saved then
                        survives a crash of the program, not of the machine.
======================= =================================================================

As with every name of the library, ``<APPLICATION NAME>_<NAME>`` comes first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    InfrastructureFactory,
    ProcessRecorder,
)
from eventsourcing.utils import Environment, EnvType, resolve_topic

from infrastructure.errors import SettingsError
from infrastructure.jsonl.recorders import (
    JSONLAggregateRecorder,
    JSONLApplicationRecorder,
    JSONLProcessRecorder,
    JSONLTrackingRecorder,
)
from infrastructure.jsonl.snapshots import JSONLSnapshotRecorder
from infrastructure.jsonl.store import SNAPSHOTS, Store

Recorder = TypeVar("Recorder")


class JSONLFactory(InfrastructureFactory[JSONLTrackingRecorder]):
    """Makes recorders that share one store."""

    LEFTFOLD_STORE = "LEFTFOLD_STORE"
    LEFTFOLD_HOME = "LEFTFOLD_HOME"
    LEFTFOLD_DURABILITY = "LEFTFOLD_DURABILITY"

    aggregate_recorder_class = JSONLAggregateRecorder
    snapshot_recorder_class = JSONLSnapshotRecorder
    application_recorder_class = JSONLApplicationRecorder
    tracking_recorder_class = JSONLTrackingRecorder
    process_recorder_class = JSONLProcessRecorder

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        self.store = Store(self._path(), durable=self._durable())
        self._snapshots = Store(self.store.path / SNAPSHOTS, durable=False, sparse=True)

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        """Return a recorder of events, or of snapshots if that is the *purpose*."""
        if purpose == "snapshots":
            return self.snapshot_recorder_class(self._snapshots, self.store)
        return self.aggregate_recorder_class(self.store)

    def application_recorder(self) -> ApplicationRecorder:
        """Return a recorder of events in one order."""
        topic = self.env.get(self.APPLICATION_RECORDER_TOPIC)
        return self._class(topic, self.application_recorder_class)(self.store)

    def tracking_recorder(
        self, tracking_recorder_class: type[JSONLTrackingRecorder] | None = None
    ) -> JSONLTrackingRecorder:
        """Return a recorder of positions."""
        topic = None if tracking_recorder_class else self.env.get(self.TRACKING_RECORDER_TOPIC)
        default = tracking_recorder_class or self.tracking_recorder_class
        return self._class(topic, default)(self.store)

    def process_recorder(self) -> ProcessRecorder:
        """Return a recorder of events with positions."""
        topic = self.env.get(self.PROCESS_RECORDER_TOPIC)
        return self._class(topic, self.process_recorder_class)(self.store)

    def _class(self, topic: str | None, default: type[Recorder]) -> type[Recorder]:
        """Return the class that *topic* names, a subclass of ours; ours, for none."""
        cls = resolve_topic(topic) if topic else default
        assert issubclass(cls, default)
        return cls

    def close(self) -> None:
        """Close the files of the store."""
        self.store.close()
        self._snapshots.close()

    def _path(self) -> Path:
        store = self.env.get(self.LEFTFOLD_STORE)
        if store:
            return _expanded(store)
        home = self.env.get(self.LEFTFOLD_HOME) or "~/.leftfold"
        return _expanded(home) / "conversations"

    def _durable(self) -> bool:
        value = self.env.get(self.LEFTFOLD_DURABILITY) or "fsync"
        if value not in ("fsync", "os"):
            text = f"{self.LEFTFOLD_DURABILITY} is {value!r}; it may be 'fsync' or 'os'"
            raise SettingsError(text)
        return value == "fsync"


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise SettingsError(f"{path!r} names a home folder that cannot be found") from error
