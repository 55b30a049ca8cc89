"""Which proxy a request goes through: as the environment says, and never to loopback.

What the HTTP client cannot understand of NO_PROXY is left out; what is no proxy is named.
"""

from __future__ import annotations

import os
from http import HTTPStatus
from ipaddress import ip_address
from socket import inet_aton
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from infrastructure.model.environment import cleaned, unusable

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

_LOOPBACK = (
    "all://localhost", "all://*.localhost", "all://127.0.0.0/8", "all://[::1]",
    "all://[::ffff:127.0.0.0]/104", "all://0.0.0.0",
)  # fmt: skip


def mounts(httpx2: Any, context: ssl.SSLContext, url: str | None) -> dict[str, Any]:
    """Return which addresses are reached by which proxy; None is none. *url* is the API's.

    Raises:
        ModelError: a variable names what is no proxy.
    """

    def proxy(name: str, said: str) -> Any:
        address = said if "://" in said else f"http://{said}"
        try:
            if not httpx2.URL(address).host:
                raise ValueError("there is no host in it")
            return httpx2.AsyncHTTPTransport(proxy=address, verify=context)
        except Exception as error:
            raise unusable(name, f"no proxy can be made of it ({error})", value=said) from error

    return _mounts(httpx2, proxy, url)


def proxy_variable(httpx2: Any, url: str) -> str | None:
    """Return the variable that names the proxy of *url*; None if it is reached without one."""

    def named(name: str, _said: str) -> Any:
        return httpx2.MockTransport(lambda _: httpx2.Response(HTTPStatus.OK, text=name))

    client = httpx2.Client(
        mounts=_mounts(httpx2, named, url), transport=named("", ""), trust_env=False
    )
    with client:
        return client.get(url).text or None


def _mounts(httpx2: Any, proxy: Callable[[str, str], Any], url: str | None) -> dict[str, Any]:
    """Return the same, each proxy made of the variable's name and its value."""
    from urllib.request import getproxies  # noqa: PLC0415 - not on the way to the prompt

    proxies = getproxies()
    found: dict[str, Any] = {}
    for scheme in ("http", "https", "all"):
        if said := cleaned(proxies.get(scheme)):
            found[f"{scheme}://"] = proxy(_name(scheme, proxies[scheme]), said)
    if not found:
        return {}
    direct = [pattern for entry in proxies.get("no", "").split(",") for pattern in _patterns(entry)]
    if "all://*" in direct:
        return {}
    return found | _usable(httpx2, [*direct, *_LOOPBACK, *_loopback_in_numbers(url)])


def _name(scheme: str, value: str) -> str:
    """Return the variable that has the *value*: of two, the one in small letters counts."""
    name = f"{scheme}_proxy"
    names = [name, *(other for other in os.environ if other.lower() == name)]
    return next((name for name in names if os.environ.get(name) == value), name)


def _patterns(entry: str) -> list[str]:
    """Return what an entry of NO_PROXY is to the HTTP client: a name is its subdomains as well."""
    entry = cleaned(entry) or ""
    if not entry:
        return []
    if "://" in entry:
        return [entry]
    host, slash, size = entry.strip("[]").partition("/")
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return [] if slash else [f"all://{entry if entry.startswith('*') else f'*{entry}'}"]
    host = f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004
    return [f"all://{host}{slash}{size.strip('[]')}"]


def _usable(httpx2: Any, patterns: list[str]) -> dict[str, None]:
    """Return those of *patterns* that the HTTP client understands: the others are left out."""
    usable: dict[str, None] = {}
    nowhere = httpx2.MockTransport(lambda _: httpx2.Response(HTTPStatus.OK))
    for pattern in patterns:
        try:
            httpx2.AsyncClient(mounts={pattern: None}, transport=nowhere)
        except (httpx2.InvalidURL, ValueError):
            continue
        usable[pattern] = None
    return usable


def _loopback_in_numbers(url: str | None) -> list[str]:
    """Return the pattern of a host like ``127.1``, which means loopback and looks like a name."""
    host = urlsplit(url or "").hostname or ""
    try:
        is_loopback = ip_address(inet_aton(host)).is_loopback
    except OSError:
        return []
    return [f"all://{host}"] if is_loopback else []
