"""What somebody who wrote a name wrong may have meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n import _

if TYPE_CHECKING:
    from collections.abc import Collection


def nearest(wrong: str, names: Collection[str]) -> str | None:
    """Return the one of *names* that is most like *wrong*; None if none is like it."""
    import difflib  # noqa: PLC0415 - only for mistakes

    return next(iter(difflib.get_close_matches(wrong, names, n=1, cutoff=0.5)), None)


def suggestion(wrong: str, names: Collection[str]) -> str:
    """Return the nearest of *names* as a question, or which names there are."""
    near = nearest(wrong, names)
    if near is not None:
        return _("did you mean {name!r}?").format(name=near)
    return _("there are: {names}").format(names=", ".join(names))


def no_command(name: str, hint: str) -> str:
    """Return what is said of a word that is no command of the command line."""
    return _("There is no command {name!r}. {hint}").format(name=name, hint=hint)
