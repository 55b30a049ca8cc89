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


def has_credentials() -> bool:
    """Whether the environment has something to sign requests with."""
    return any(os.environ.get(name) for name in CREDENTIALS)


def knows_caching() -> bool:
    """Whether the server keeps the beginnings of requests: Anthropic's does, others may not."""
    host = urlsplit(os.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com").hostname
    return host is not None and (host == "anthropic.com" or host.endswith(".anthropic.com"))
