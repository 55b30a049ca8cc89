"""The interface in the person's language: English, or Chinese if the locale says so.

Messages are written in English in the code, as ``_("… {name} …").format(name=name)``; the
translations are in ``app/translations`` (a test finds what is missing there). What models, logs
and programs read is never translated.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DOMAIN = "leftfold"
FOLDER = Path(__file__).parent / "translations"


def language(environment: Mapping[str, str]) -> str | None:
    """Return the language that the locale's variables ask for; None is English.

    The locale need not be installed: nothing but its name is looked at.
    """
    said = next(filter(None, map(environment.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return "zh_CN" if said.lower().startswith("zh") else None


def _(message: str) -> str:
    """Return *message* in the person's language."""
    return _translate()(message)


def is_english() -> bool:
    """Whether messages stay as they are in the code."""
    return _translate() is _unchanged


@cache
def _translate() -> Callable[[str], str]:
    chosen = language(os.environ)
    if chosen is None or not _can_be_printed("中"):
        return _unchanged
    import gettext  # noqa: PLC0415 - not for English

    # click asks the process-wide catalogue for its own words.
    gettext.bindtextdomain(DOMAIN, str(FOLDER))
    gettext.textdomain(DOMAIN)
    return gettext.translation(DOMAIN, str(FOLDER), [chosen], fallback=True).gettext


def _unchanged(message: str) -> str:
    return message


def _can_be_printed(text: str) -> bool:
    for stream in (sys.stdout, sys.stderr):
        try:
            text.encode(getattr(stream, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return False
    return True
