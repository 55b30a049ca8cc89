"""A request: our own processor time, from the log's last event to the first byte of an answer.

The SDK's part is in it, the server's is not: it is another thread.
"""

import asyncio
import time
from contextlib import aclosing

from domain.projections.requests import Requests
from infrastructure.model.client import AnthropicModel
from tests.benchmarks import workload
from tests.benchmarks.measure import Budget, Comparison
from tests.raw_server import RawServer, response, said, sse


def requesting(stack, app, sizes):
    """One more request of conversations of these *sizes*, by the real client, over loopback.

    What it needs is open until *stack* closes.
    """
    server = stack.enter_context(RawServer(response(sse(*said("Done.")))))
    runner = stack.enter_context(asyncio.Runner())
    model = AnthropicModel(base_url=server.url, api_key="none")
    stack.callback(lambda: runner.run(model.close()))
    runs = {}
    for size in sizes:
        runs[f"ours: a request, {size:,} entries"] = _request(runner, model, app, size)
    budgets = [Budget(run, 2e-3) for run, size in zip(runs, sizes, strict=True) if size <= 1_000]
    return Comparison("own processor time of a request", runs, tuple(budgets))


def _request(runner, model, app, size):
    at_hand = app.start(workload.begin)
    at_hand.record(lambda talk: [workload.append(talk, number) for number in range(size)])
    requests = Requests(at_hand.conversation)

    async def first_event():
        at_hand.record(lambda talk: talk.append_prompt("Go on."))
        assert requests.conversation is at_hand.conversation
        began = time.thread_time()
        request, _digest = requests.request(at_hand.conversation.leaf)
        ended = 0.0
        async with aclosing(model.stream(request)) as events:
            async for _ in events:
                ended = ended or time.thread_time()
        return ended - began

    runner.run(first_event())  # imports the SDK, projects and hashes the history
    return lambda: [runner.run(first_event())]
