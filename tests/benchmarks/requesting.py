"""A request: our own processor time, from the log's last event to the first byte that is sent.

The SDK's part is in it. What the kernel takes to move a megabyte over loopback is not.
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

    The first one of a conversation lays out all of it, the next ones what came meanwhile. What it
    needs is open until *stack* closes.
    """
    server = stack.enter_context(RawServer(response(sse(*said("Done.")))))
    runner = stack.enter_context(asyncio.Runner())
    model = AnthropicModel(base_url=server.url, api_key="none")
    stack.callback(lambda: runner.run(model.close()))
    runs, budgets = {}, []
    for size in sizes:
        first, another = _requests(runner, model, app, size)
        runs[f"ours: a request, {size:,} entries"] = another
        runs[f"ours: the first request, {size:,} entries"] = first
        if size <= 1_000:
            budgets.append(Budget(f"ours: a request, {size:,} entries", 2e-3))
    return Comparison("own processor time of a request", runs, tuple(budgets))


def _requests(runner, model, app, size):
    at_hand = app.start(workload.begin)
    at_hand.record(lambda talk: [workload.append(talk, number) for number in range(size)])
    held = Requests(at_hand.conversation)

    async def to_first_byte(requests):
        began, sent = time.thread_time(), []

        async def about_to_send(_request):
            sent.append(time.thread_time())

        request, _digest = requests.request(at_hand.conversation.leaf)
        if model._client is not None:
            model._client._client.event_hooks = {"request": [about_to_send]}
        async with aclosing(model.stream(request)) as events:
            async for _ in events:
                pass
        return [moment - began for moment in sent]

    def another():
        at_hand.record(lambda talk: talk.append_prompt("Go on."))
        assert held.conversation is at_hand.conversation
        return runner.run(to_first_byte(held))

    another()  # imports the SDK, lays out and hashes the history
    return lambda: runner.run(to_first_byte(Requests(at_hand.conversation))), another
