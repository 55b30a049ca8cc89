"""What can go wrong outside the domain: three roots.

A `StoreError` (where events are kept) is one of the eventsourcing library's `PersistenceError`, and
most are one of its errors of the Python database API too. A `ModelError` is about who answers, a
`ToolError` about what acts on the machine.

Every `StoreError` carries the path it is about. ``OSError`` never leaves this package.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, dataclass
from typing import TYPE_CHECKING

from eventsourcing.persistence import (
    DataError,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    PersistenceError,
    ProgrammingError,
)

from infrastructure.safe_files import reason_of
from infrastructure.secrets import redacted

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID


class StoreError(PersistenceError):
    """Base of everything that can go wrong with a store.

    Attributes:
        path: The file or folder it is about, if there is one.
    """

    def __init__(self, message: str, *, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class SettingsError(StoreError):
    """A setting has a value that means nothing."""


class InvalidIdError(StoreError, ProgrammingError):
    """An originator id that is not a UUID: ids never become paths."""


class InvalidEventError(StoreError, DataError):
    """An event that a log cannot hold: a version out of range, a topic that is not text."""


class VersionConflictError(StoreError, IntegrityError):
    """A new event's version is not above the last one, of the log or of the same call."""

    def __init__(self, originator_id: UUID, version: int, last: int, *, path: Path) -> None:
        super().__init__(
            f"version {version} of {originator_id} is not above version {last}", path=path
        )


class LogExistsError(StoreError, IntegrityError):
    """A new log was to be created where one is already."""


class LogMissingError(StoreError, OperationalError):
    """A log that was asked for is not in the store."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: no such log", path=path)


class LogReplacedError(StoreError, OperationalError):
    """A log was deleted, or another file took its name, while it was in use."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: the log was deleted or replaced; nothing was written", path=path)


class NewerFormatError(StoreError, NotSupportedError):
    """A log in a format that only a newer version can read.

    Attributes:
        format: What the file's header says.
    """

    def __init__(self, path: Path | None, file_format: str) -> None:
        where = f"{path}: " if path else ""
        super().__init__(f"{where}format {file_format!r} is newer than this program", path=path)
        self.format = file_format


class OrderRebuiltError(StoreError, OperationalError):
    """The order of all events was built again: notification ids have a new meaning from here on."""


class LockedStateError(StoreError, DataError):
    """The state of an event cannot be decrypted or decompressed with these settings."""


class LockTimeoutError(StoreError, OperationalError):
    """A kernel lock stayed with another process for too long."""


class LeaseHeldError(StoreError, OperationalError):
    """Another program has this conversation open.

    Attributes:
        holder: What the holder wrote about itself (pid, host, program, since): a hint, not proof.
    """

    def __init__(
        self, conversation: UUID, holder: dict[str, str | int], *, path: Path | None = None
    ) -> None:
        who = ", ".join(f"{name} {value}" for name, value in holder.items()) or "unknown"
        super().__init__(
            f"conversation {conversation} is open in another program ({who})", path=path
        )
        self.holder = holder


class ReadModelError(StoreError, OperationalError):
    """A read model cannot be used: what it says must be read from the logs."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}", path=path)


class QuestionError(Exception):
    """A question in SQL that is not answered.

    *why* is wrong, or refused, with what SQLite says as *text*; nothing (it is no question),
    several, late or large.
    """

    def __init__(self, why: str, text: str = "") -> None:
        super().__init__(text or why)
        self.why = why


class ReadError(StoreError, OperationalError):
    """The operating system refused to read a file."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"{path}: cannot be read: {reason_of(error)}", path=path)


class WriteError(StoreError, OperationalError):
    """The operating system refused a write or a sync; nothing of the save is kept."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"{path}: not saved: {reason_of(error)}", path=path)


_REFUSALS = (400, 422)


@dataclass(eq=False, repr=False)
class ModelError(Exception):
    """There is no answer from the model, or it broke off.

    Its text is one line: *message*, and the *advice* what to do. It has passed
    `infrastructure.secrets.redacted`.

    Attributes:
        reason: The text without the advice.
        kind: What the API or the transport calls it (``overloaded_error``, ``ReadTimeout`` …).
        status: The HTTP status, if there was one.
        request_id: The API's name for the request, if it said one.
        is_passing: Whether the same request may get an answer a moment later.
        retry_after: How many seconds the server asks to wait.
        is_overflow: Whether the request was longer than the model's window.
        context_window: The window that the server named, in tokens.
        requested_tokens: How long the request was, as the server counted.
        max_tokens: The longest answer that the server allows, where more was asked for.
    """

    message: InitVar[str]
    _: KW_ONLY
    advice: InitVar[str] = ""
    kind: str = "model_error"
    status: int | None = None
    request_id: str | None = None
    is_passing: bool = False
    retry_after: float | None = None
    is_overflow: bool = False
    context_window: int | None = None
    requested_tokens: int | None = None
    max_tokens: int | None = None

    def __post_init__(self, message: str, advice: str) -> None:
        self.reason = redacted(" ".join(message.split()))
        super().__init__(f"{self.reason}: {redacted(advice)}" if advice else self.reason)

    @property
    def is_unexplained(self) -> bool:
        """Whether the server refused the request in words that say nothing of a limit."""
        return self.status in _REFUSALS and not self.is_overflow and self.max_tokens is None


class ToolError(Exception):
    """Base of everything that a tool can fail with; the text is for the model to read."""
