"""The proxy that requests go through: as the environment says, and never to loopback.

What cannot be understood of NO_PROXY is left out.
"""

from __future__ import annotations

import os
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from socket import inet_aton
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from infrastructure.model.environment import cleaned

_PORTS = {"http": 80, "https": 443}


class Proxy(NamedTuple):
    """A proxy: the variable that names it, what that says, and the address that it means."""

    variable: str
    said: str
    address: str


def proxies() -> dict[str, Proxy]:
    """Return the proxies of the environment by the scheme of what goes through them, or ``all``."""
    from urllib.request import getproxies  # noqa: PLC0415 - not on the way to the prompt

    found = getproxies()
    return {
        scheme: Proxy(
            _name(scheme, found[scheme]), said, said if "://" in said else f"http://{said}"
        )
        for scheme in ("http", "https", "all")
        if (said := cleaned(found.get(scheme)))
    }


def proxy_of(url: str) -> Proxy | None:
    """Return the proxy through which *url* is reached; None if it is reached without one."""
    from urllib.request import getproxies  # noqa: PLC0415 - as above

    to, known = urlsplit(url), proxies()
    proxy = known.get(to.scheme) or known.get("all")
    address = _address(to.hostname or "")
    exceptions = ["localhost", *getproxies().get("no", "").split(",")]
    is_direct = (address is not None and (address.is_loopback or address.is_unspecified)) or any(
        _is_exception(to, address, cleaned(entry) or "") for entry in exceptions
    )
    return None if is_direct else proxy


def _name(scheme: str, value: str) -> str:
    """Return the variable that has the *value*: of two, the one in small letters counts."""
    name = f"{scheme}_proxy"
    names = [name, *(other for other in os.environ if other.lower() == name)]
    return next((name for name in names if os.environ.get(name) == value), name)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that *host* is, also in short (``127.1``); None for a name."""
    with suppress(ValueError):
        address = ip_address(host)
        return getattr(address, "ipv4_mapped", None) or address
    with suppress(OSError):
        return IPv4Address(inet_aton(host))
    return None


def _is_exception(to: SplitResult, address: IPv4Address | IPv6Address | None, entry: str) -> bool:
    """Whether an *entry* of NO_PROXY means *to*: a network, or a name and what is below it."""
    scheme, _, place = entry.lower().rpartition("://")
    if not place or scheme not in ("", "all", to.scheme):
        return False
    with suppress(ValueError):
        network = ip_network(place.translate({ord("["): None, ord("]"): None}), strict=False)
        return address is not None and address in network
    name, _, port = place.partition(":")
    if port and port != str(to.port or _PORTS.get(to.scheme)):
        return False
    suffix = name.removeprefix("*")
    host = to.hostname or ""
    return host.endswith(suffix) if suffix[:1] in ("", ".") else f".{host}".endswith(f".{suffix}")
