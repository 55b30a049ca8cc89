"""The tree of entries, as functions over its bare structure: ``{version: parent}``.

Parents are always smaller than their children, so no walk can turn in a circle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.events import Version

    Parents = Mapping[Version, Version | None]


def path(parents: Parents, leaf: Version | None) -> tuple[Version, ...]:
    """Return the entries from the root to *leaf*; nothing for no leaf."""
    versions = []
    while leaf is not None:
        versions.append(leaf)
        leaf = parents[leaf]
    versions.reverse()
    return tuple(versions)


def children(parents: Parents) -> dict[Version | None, list[Version]]:
    """Return the children of every entry (and, under None, the roots), oldest first."""
    result: dict[Version | None, list[Version]] = {}
    for version, parent in parents.items():
        result.setdefault(parent, []).append(version)
    return result


def common_ancestor(parents: Parents, one: Version | None, other: Version | None) -> Version | None:
    """Return the newest entry that is on the paths to both; None if they share none."""
    while one != other:
        if one is None or other is None:
            return None
        if one > other:
            one = parents[one]
        else:
            other = parents[other]
    return one
