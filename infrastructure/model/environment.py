"""What the environment says about the model: which one, where, and whether requests are signed.

Apart from the client, so that a command that asks no model imports nothing of one.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

DEFAULT_MODEL = "claude-sonnet-5-5"
"""The SDK's newest Sonnet."""

CREDENTIALS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_PROFILE",
    "ANTHROPIC_IDENTITY_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN_FILE",
)
"""The environment variables with which the SDK can sign a request."""

_AROUND = "\ufeff\u200b\u200c\u200d\u2060\x00"
_QUOTES = ('""', "''")


def cleaned(value: str | None) -> str | None:
    """Return *value* without what a file or a shell has left around it; None if nothing is left.

    White space of every kind (a key out of a file with CRLF), a byte order mark, and quotes.
    """
    text = value or ""
    while True:
        inner = text.strip().strip(_AROUND)
        if inner[:1] + inner[1:][-1:] in _QUOTES:
            inner = inner[1:-1]
        if inner == text:
            return text or None
        text = inner


def has_credentials() -> bool:
    """Whether the environment has something to sign requests with."""
    return any(cleaned(os.environ.get(name)) for name in CREDENTIALS)


def base_url() -> str | None:
    """Return the address of the API, unchecked; None where the environment names none."""
    return cleaned(os.environ.get("ANTHROPIC_BASE_URL"))


def knows_caching() -> bool:
    """Whether the server keeps the beginnings of requests: Anthropic's does, others may not."""
    try:
        host = urlsplit(base_url() or "https://api.anthropic.com").hostname
    except ValueError:  # no address at all: the first request says so
        return False
    return host is not None and (host == "anthropic.com" or host.endswith(".anthropic.com"))
