"""Builders and small tools for the tests of the store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import UUID

from eventsourcing.persistence import StoredEvent

ID = UUID("01900000-0000-7000-8000-000000000001")
OTHER = UUID("01900000-0000-7000-8000-000000000002")
ROOT = Path(__file__).parents[3]


def event(version, text="x", originator_id=ID, topic="Noted"):
    state = b'{"text":"%s"}' % text.encode()
    return StoredEvent(originator_id, version, topic, state)


def events(first, last, text="x", originator_id=ID):
    return [event(version, text, originator_id) for version in range(first, last + 1)]


def fill(store, count, text="x", originator_id=ID):
    """Save versions 1 to *count*, one by one."""
    for version in range(1, count + 1):
        store.insert([event(version, text, originator_id)])


def versions(store, originator_id=ID, **query):
    return [line.version for line in store.log(originator_id).read(**query)]


def rows(store, originator_id=ID):
    """Return the physical lines, the header first, without newlines."""
    return store.path_of(originator_id).read_bytes().split(b"\n")[:-1]


def put(store, lines, originator_id=ID, end=b"\n"):
    store.path_of(originator_id).write_bytes(b"\n".join(lines) + end)


def python(code, *arguments):
    """Start a Python that can import the project; the caller waits for it."""
    command = [sys.executable, "-P", "-c", code, *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
