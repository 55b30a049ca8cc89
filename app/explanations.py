"""What a person is told of any error, with which exit code."""

from __future__ import annotations

import re

from eventsourcing.persistence import PersistenceError

from app.errors import FAILED, AppError
from app.i18n import _
from domain.errors import ConversationError, UnknownEntryError
from infrastructure.errors import ModelError, StoreError
from infrastructure.safe_files import reason_of
from infrastructure.secrets import redacted


def kind_of(error: BaseException) -> str:
    """Return the name of an error for programs: ``lease_held`` of a `LeaseHeldError`."""
    name = type(error).__name__.removesuffix("Error")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


EXPECTED = (AppError, ConversationError, StoreError, ModelError, PersistenceError, OSError)
"""What a person can do something about. Anything else is a bug, and its traceback says more."""


def explanation(error: BaseException) -> tuple[str, int] | None:
    """Return the lines and the exit code for an error that is `EXPECTED`; None for any other."""
    if not isinstance(error, EXPECTED):
        return None
    return message_of(error), error.exit_code if isinstance(error, AppError) else FAILED


def message_of(error: BaseException) -> str:
    """Return the lines that a person is told of an error that is `EXPECTED`; no secret in them."""
    match error:
        case UnknownEntryError():
            said = _("{version} is not an entry of this conversation")
            text = said.format(version=error.version)
        case OSError():
            text = f"{error.filename or _('system error')}: {reason_of(error)}"
        case _:
            text = str(error) or type(error).__name__
    return redacted(text)


def name_of(error: BaseException) -> str:
    """Return a line for an error that nobody expected: its type and its first line, no secret."""
    return redacted(f"{type(error).__name__}: {error}".partition("\n")[0])


def traceback_of(error: BaseException) -> str:
    """Return where *error* came from, to find a bug, without secrets."""
    import traceback  # noqa: PLC0415 - only who looks for a bug waits for it

    return redacted("".join(traceback.format_exception(error)))
