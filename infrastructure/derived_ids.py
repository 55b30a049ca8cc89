"""Ids that follow from what they name: whoever makes one again makes the same one."""

from __future__ import annotations

from uuid import UUID


def uuid7_of(milliseconds: int, random_a: int, random_b: int) -> UUID:
    """Return the UUIDv7 (RFC 9562) of a time, 48 bits, and of 12 and 62 bits of a digest."""
    return UUID(int=milliseconds << 80 | 7 << 76 | random_a << 64 | 2 << 62 | random_b)
