"""Errors of the application; what a person is told of them is in `app.explanations`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n import _

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

DONE, FAILED, WRONG_USAGE = 0, 1, 2


class AppError(Exception):
    """What a person asked for cannot be done: a *text*, or `MESSAGE` with the *data* in it."""

    exit_code = FAILED
    MESSAGE: str

    def __init__(self, text: str = "", /, **data: object) -> None:
        super().__init__(text or _(self.MESSAGE).format(**data))


class NoSuchConversationError(AppError):
    """An id that matches no conversation."""

    MESSAGE = "no conversation matches {wanted!r}; `leftfold list --all` shows all"


class AmbiguousIdError(AppError):
    """A part of an id that matches several conversations."""

    MESSAGE = "{wanted!r} matches {matches} conversations: {some}{more}"

    def __init__(self, wanted: str, matches: Sequence[UUID]) -> None:
        some = ", ".join(str(match) for match in matches[:3])
        more = _(" and {more} more").format(more=len(matches) - 3) if len(matches) > 3 else ""  # noqa: PLR2004
        super().__init__(wanted=wanted, matches=len(matches), some=some, more=more)


class DirectoryGoneError(AppError):
    """The directory of a conversation has moved or vanished, and nobody can be asked."""

    MESSAGE = (
        "the directory of this conversation is gone: {gone}; with --here its tools run in {here}"
    )


class ForeignDirectoryError(AppError):
    """A log from elsewhere names a directory, and nobody can be asked whether it is meant."""

    MESSAGE = (
        "this conversation was not begun here, and its directory is {gone}: go there to "
        "work in it; with --here its tools run in {here}"
    )


class UnreadableConversationError(AppError):
    """A log that is there, and of which no event can be read: damaged is not absent."""

    MESSAGE = (
        "conversation {id} is damaged: no event of it can be read; `leftfold verify "
        "{id}` says where, `leftfold recover {id}` saves what can be saved"
    )


class LockedConversationError(AppError):
    """A conversation of which nothing can be read with the cipher and compressor of this run."""

    MESSAGE = "conversation {id} {reason}"


class NotRecordedError(AppError):
    """The log could not take an event; nothing was believed, nothing may be done about it."""


class NewerEventsError(NotRecordedError):
    """A newer version wrote events that mean something else now: nothing is added to them."""

    MESSAGE = (
        "a newer version of leftfold has written in conversation {id}: it can be looked at "
        "with this one, and nothing is added to it"
    )


class ChangedElsewhereError(NotRecordedError):
    """Another program appended to this conversation; what was offered was not recorded."""

    MESSAGE = (
        "conversation {id} was changed by another program meanwhile: "
        "nothing was added; it has been read again"
    )


class UsageError(AppError):
    """An option or argument that makes no sense."""

    exit_code = WRONG_USAGE


class NoCredentialsError(UsageError):
    """No key, and nobody at a terminal to tell."""

    MESSAGE = (
        "no ANTHROPIC_API_KEY is set; set one, or use --offline for the built-in offline model"
    )
