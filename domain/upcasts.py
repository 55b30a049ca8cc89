"""Old shapes of events made new: one small function per step, never deleted.

An event class says its shape's number in ``class_version``; a stored state that says a smaller one
(or none, which is 1) goes through the functions from there upward. Each takes the state as a dict
and returns it changed.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Upcast: TypeAlias = "Callable[[dict[str, Any]], dict[str, Any]]"

UPCASTS: MappingProxyType[tuple[str, int], Upcast] = MappingProxyType({})
"""(topic, from version) → the function that makes it the next version. No shape is old yet."""
