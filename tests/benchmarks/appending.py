"""Appending: at the recorder, through the application, through a whole turn, from four processes."""

import asyncio
import multiprocessing
import time
from itertools import count
from uuid import uuid4

from eventsourcing.persistence import StoredEvent

from app.agent import Agent
from app.compactor import Compactor
from app.tool_calls import ToolCalls
from domain.tool_use import Plan, ToolOutput
from tests.benchmarks import library, limits, workload
from tests.benchmarks.limits import BLOCK
from tests.benchmarks.measure import Budget, Comparison

WRITE, SYNCED = "limit: write", "limit: write + fdatasync"
RECORDER, SAVE, COMMAND = "ours: recorder", "ours: Application.save", "ours: command + save"
SQLITE, POPO = "eventsourcing.sqlite", "eventsourcing.popo"


def appending(app, folder, *, durable):
    """One event of 1 KB: bare system calls, our recorder, our application, the library's."""
    limit = SYNCED if durable else WRITE
    talk = _begun(app)
    runs = {
        limit: limits.writes(folder / f"bare-{durable}", _lines(talk), sync=durable),
        RECORDER: inserts(app),
        SAVE: saves(app, talk),
        COMMAND: saves(app, talk, with_command=True),
    }
    if durable:
        runs[SQLITE] = library.appends(library.sqlite(folder))
        budget = Budget(RECORDER, 1.3, limit, small=200e-6, beyond=60e-6)
        return Comparison("append 1 KB, durable", runs, (budget,))
    runs[POPO] = library.appends(library.popo())
    return Comparison("append 1 KB, not waiting for the disk", runs, (Budget(SAVE, 0.6, POPO),))


def _begun(app):
    talk = workload.begin(uuid4(), app.clock())
    app.save(talk)
    return talk


def _stored(originator, version):
    state = workload.state(version)
    return StoredEvent(originator, version, "MessageAppended", state)


def _lines(talk):
    return (limits.line_like(_stored(talk.id, number)) for number in count(1))


def inserts(app):
    """Return a run that appends at the recorder."""
    originator, numbers = uuid4(), count(1)

    def run():
        took = []
        for _ in range(BLOCK):
            events = [_stored(originator, next(numbers))]
            began = time.perf_counter()
            app.recorder.insert_events(events)
            took.append(time.perf_counter() - began)
        return took

    return run


def saves(app, talk=None, *, with_command=False):
    """Return a run that saves one conversation at hand; *with_command*, what it saves is timed too.

    Of one conversation one run is made after the other: their messages follow one another.
    """
    talk = talk or _begun(app)

    def run():
        took = []
        for _ in range(BLOCK):
            number = talk.message_count()
            began = time.perf_counter()
            workload.append(talk, number)
            began = began if with_command else time.perf_counter()
            app.save(talk)
            took.append(time.perf_counter() - began)
        return took

    return run


def flatness(app, entries):
    """Saving at the beginning and at the end of a long conversation: the same."""
    talks = {}

    def grown(size):
        if size not in talks:
            talk = talks[size] = _begun(app)
            for number in range(size):
                workload.append(talk, number)
                if number % 500 == 499:
                    app.save(talk)
            app.save(talk)
        return talks[size]

    sizes = (0, entries // 10, entries)
    runs = {
        f"ours: Application.save, after {size:,} events": saves(app, grown(size)) for size in sizes
    }
    first, *_, last = runs
    return Comparison("append stays flat", runs, (Budget(last, 1.25, first),))


# -- a whole turn ------------------------------------------------------------------------------


class Instant:
    """A model that answers at once: first with a call, then with words."""

    def __init__(self):
        self._numbers = count()

    async def stream(self, _request):
        number = next(self._numbers)
        usage = {"input_tokens": 10, "output_tokens": 10}
        yield {"type": "message_start", "message": {"id": f"msg_{number}", "usage": usage}}
        if number % 2:
            block, stop = {"type": "text", "text": "Done."}, "end_turn"
        else:
            block, stop = (
                {"type": "tool_use", "id": f"toolu_b{number}", "name": "none", "input": {}},
                "tool_use",
            )
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_stop", "index": 0}
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": stop},
            "usage": {"output_tokens": 5},
        }
        yield {"type": "message_stop"}


class Tools:
    """A toolbox whose calls cost nothing."""

    tools = {}

    async def plan(self, call, seen):
        return Plan()

    async def run(self, call, on_output, *, state, seen):
        return ToolOutput("done")


class Blind:
    """A screen, and an approver, that does nothing."""

    def __getattr__(self, name):
        return lambda *_: None


def turns(app, sizes, durable):
    """A turn with one call: everything but the model and the tool; once with the disk's part."""
    runs = {f"ours: turn with a call, {size:,} entries before": _turn(app, size) for size in sizes}
    budgets = tuple(Budget(run, 5e-3) for run in runs)
    runs["ours: the same, durable (6 syncs)"] = _turn(durable, 0)
    return Comparison("a whole turn, our own time", runs, budgets)


def _turn(app, size):
    at_hand = app.start(workload.begin)
    for start in range(0, size, 500):
        at_hand.record(
            lambda talk, start=start: [
                workload.append(talk, number) for number in range(start, min(start + 500, size))
            ]
        )
    model, screen = Instant(), Blind()
    compactor = Compactor(at_hand, model, screen, lambda _: 10**9)
    calls = ToolCalls(at_hand, Tools(), screen, screen)
    agent = Agent(
        open_conversation=at_hand,
        model=model,
        tool_calls=calls,
        screen=screen,
        compactor=compactor,
    )

    def run():
        async def turn():
            began = time.perf_counter()
            outcome = await agent.run_turn("Go on.")
            assert outcome == "done", outcome
            return time.perf_counter() - began

        return [asyncio.run(turn())]

    return run


# -- several processes -------------------------------------------------------------------------


def processes(folder, counts=(1, 4)):
    """Appends a second, durable, by so many processes, each in a conversation of its own."""
    runs = {
        f"ours: {count} processes": lambda count=count: [_together(folder, count)]
        for count in counts
    }
    return Comparison("durable appends, several processes on one store", runs, (), "appends/s")


def _together(folder, processes, appends=200):
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(processes + 1)
    workers = [
        spawn.Process(target=_append_many, args=(folder, appends, barrier))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    barrier.wait()
    began = time.perf_counter()
    for worker in workers:
        worker.join()
    return processes * appends / (time.perf_counter() - began)


def _append_many(folder, appends, barrier):
    with workload.conversations(folder, durable=True) as app:
        talk = _begun(app)
        barrier.wait()
        for number in range(appends):
            workload.append(talk, number)
            app.save(talk)
