"""The eventsourcing library by itself, over SQLite and in memory, as its documentation has it."""

import time
from uuid import uuid4

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event

from tests.benchmarks.limits import BLOCK
from tests.benchmarks.workload import message


class Messages(Aggregate):
    def __init__(self):
        self.messages = []

    @event("Appended")
    def append(self, message):
        self.messages.append(message)


class Plain(Application):
    name = "plain"


def sqlite(folder, name=None):
    """Return an application over a database file in *folder*."""
    path = folder / f"{name or uuid4()}.db"
    return Plain({"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)})


def popo():
    """Return an application that keeps everything in memory."""
    return Plain({"PERSISTENCE_MODULE": "eventsourcing.popo"})


def appends(app):
    """Return a run that appends to an aggregate at hand."""
    aggregate = Messages()
    app.save(aggregate)

    def run():
        took = []
        for number in range(BLOCK):
            body = message(number)
            began = time.perf_counter()
            aggregate.append(body)
            app.save(aggregate)
            took.append(time.perf_counter() - began)
        return took

    return run


def fill(app, entries):
    """Write an aggregate of so many *entries*; return its id."""
    aggregate = Messages()
    for number in range(entries):
        aggregate.append(message(number))
        if number % 500 == 499:
            app.save(aggregate)
    app.save(aggregate)
    return aggregate.id
