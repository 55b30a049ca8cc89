"""The SDK's client, made from the environment: every variable that it can stumble over is named.

The SDK and its transport read a dozen variables on their own, and raise whatever a wrong one makes
them raise. So they are read here: cleaned, checked, handed over; the SDK reads none of those again.
No redirection is followed: a server would choose who gets the
conversation, and each header but ``Authorization``. Only credentials of other kinds than a key or a
token (profiles, identity tokens) are left to the SDK to find.
"""

from __future__ import annotations

import os
import re
import ssl
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infrastructure.errors import ModelError
from infrastructure.model.environment import base_url as base_url_of_environment
from infrastructure.model.environment import cleaned
from infrastructure.model.proxies import proxies, proxy_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADERS = "ANTHROPIC_CUSTOM_HEADERS"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_LAST_PORT = 65_535
_KEY = re.compile(r"[\x21-\x7e]+")
_OTHERS = (
    "ANTHROPIC_PROFILE", "ANTHROPIC_CONFIG_DIR", "ANTHROPIC_IDENTITY_TOKEN_FILE",
    "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID",
    "ANTHROPIC_SERVICE_ACCOUNT_ID", "ANTHROPIC_WORKSPACE_ID", "ANTHROPIC_SCOPE",
)  # fmt: skip
"""What the SDK reads on its own, to be named if it fails."""


def connect(anthropic: Any, *, base_url: str, api_key: str) -> Any:
    """Return a client for *base_url*, to which nothing of the environment applies."""
    http = anthropic.DefaultAsyncHttpxClient(
        trust_env=False, follow_redirects=False, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
    with _without(_HEADERS):
        return anthropic.AsyncAnthropic(
            api_key=api_key,
            base_url=base_url,
            max_retries=0,
            http_client=http,
            open_telemetry=False,
        )


def connect_by_environment(anthropic: Any, httpx2: Any) -> Any:
    """Return a client as the environment describes it.

    Raises:
        ModelError: a variable has a value that no client can be made of; it is named.
    """
    url = _checked_base_url(httpx2)
    context = _tls(httpx2)
    _check_proxies(httpx2, context)
    http = partial(
        anthropic.DefaultAsyncHttpxClient, trust_env=False, follow_redirects=False, verify=context
    )
    headers = _custom_headers()
    with _without(_HEADERS):
        try:
            client = anthropic.AsyncAnthropic(
                base_url=url,
                max_retries=0,
                http_client=http(),
                default_headers=headers,
                **_credential(),
            )
        except Exception as error:
            raise unusable_credentials(error) from error
        proxy = proxy_of(str(client.base_url))  # which a profile may name
        return client.with_options(http_client=http(proxy=proxy.address)) if proxy else client


def unusable_credentials(error: Exception) -> ModelError:
    """Return what to say when the credentials that the SDK looks for itself cannot be used."""
    chosen = [f"{name}={os.environ[name]!r}" for name in _OTHERS if os.environ.get(name)]
    return ModelError(
        f"the credentials cannot be used ({error}; {', '.join(chosen) or 'no variable is set'})",
        advice="set ANTHROPIC_API_KEY, or mend what these variables name",
        kind=type(error).__name__,
    )


@contextmanager
def _without(name: str) -> Iterator[None]:
    """Hide a variable from the SDK, which would read it whatever it is told."""
    value = os.environ.pop(name, None)
    try:
        yield
    finally:
        if value is not None:
            os.environ[name] = value


# -- variable by variable ------------------------------------------------------------------------


def _credential() -> dict[str, str]:
    """Return the key or the token, if one is set: the key wins."""
    for option, name in (("api_key", "ANTHROPIC_API_KEY"), ("auth_token", "ANTHROPIC_AUTH_TOKEN")):
        value = cleaned(os.environ.get(name))
        if value and not _KEY.fullmatch(value):
            wrong = next(index for index, char in enumerate(value) if not _KEY.match(char))
            raise unusable(
                name, f"character {wrong + 1} of it (U+{ord(value[wrong]):04X}) cannot be in a key"
            )
        if value:
            return {option: value}
    return {}


def _checked_base_url(httpx2: Any) -> str | None:
    name, said = "ANTHROPIC_BASE_URL", base_url_of_environment()
    if said is None:
        return None
    example = "give an address like https://api.anthropic.com"
    try:
        url = httpx2.URL(said)
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise unusable(name, f"{error}; {example}", value=said) from error
    if url.scheme not in ("http", "https"):
        raise unusable(name, f"it does not begin with http:// or https://; {example}", value=said)
    if not url.host or (url.port or 1) > _LAST_PORT or re.search(r"[\s\x00-\x1f\x7f]|%20|%0", said):
        raise unusable(name, f"this is no address; {example}", value=said)
    return said


def _check_proxies(httpx2: Any, context: ssl.SSLContext) -> None:
    for proxy in proxies().values():
        try:
            if not httpx2.URL(proxy.address).host:
                raise ValueError("there is no host in it")
            httpx2.AsyncHTTPTransport(proxy=proxy.address, verify=context)
        except Exception as error:
            why = f"no proxy can be made of it ({error})"
            raise unusable(proxy.variable, why, value=proxy.said) from error


def _custom_headers() -> dict[str, str]:
    headers = {}
    for line in os.environ.get(_HEADERS, "").splitlines():
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            continue
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise unusable(_HEADERS, f"the header {name!r} has characters that no header may have")
        headers[name] = value
    return headers


def _tls(httpx2: Any) -> Any:
    """Return how servers are checked: by the authorities that the environment or the system has."""
    for name, is_there in (("SSL_CERT_FILE", Path.is_file), ("SSL_CERT_DIR", Path.is_dir)):
        value = os.environ.get(name)
        if not value:
            continue
        try:
            if not is_there(Path(value)):
                raise unusable(name, "there is no such file or directory", value=value)
            is_file = name == "SSL_CERT_FILE"
            return ssl.create_default_context(
                cafile=value if is_file else None, capath=None if is_file else value
            )
        except (OSError, ValueError) as error:
            raise unusable(
                name, f"no certificates can be read from it ({error})", value=value
            ) from error
    return httpx2.create_ssl_context(trust_env=False)


def unusable(name: str, why: str, *, value: str | None = None) -> ModelError:
    """Return the error of the variable *name*: its value, unless it is a secret, and why."""
    shown = "" if value is None else f"={value!r}"
    return ModelError(f"{name}{shown}: {why}", kind="environment_error")
