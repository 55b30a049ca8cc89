"""Who owns the signals is told of them, and gives them back; `nohup` keeps its word."""

import asyncio
import os
import signal

import pytest

from app.signals import owned

NUMBERS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def somebody(_number, _frame):
    """Somebody else's handler."""


@pytest.fixture(params=[signal.SIG_IGN, somebody], ids=["nohup", "not nohup"])
def hang_up(request):
    """How a hang-up is taken before anybody owns the signals."""
    handlers = (request.param, somebody, somebody)
    before = [signal.signal(*each) for each in zip(NUMBERS, handlers, strict=True)]
    yield request.param
    for each in zip(NUMBERS, before, strict=True):
        signal.signal(*each)


def test_the_owner_is_told_the_exit_code_of_each_signal_but_of_an_ignored_hang_up(hang_up):
    expected = {130, 143} if hang_up is signal.SIG_IGN else {129, 130, 143}
    before = [signal.getsignal(number) for number in NUMBERS]

    async def own():
        told, is_all = [], asyncio.Event()

        def tell(code):
            told.append(code)
            if len(told) == len(expected):
                is_all.set()

        with owned(tell):
            for number in NUMBERS:
                os.kill(os.getpid(), number)
            await asyncio.wait_for(is_all.wait(), 60)
        return told

    assert set(asyncio.run(own())) == expected
    assert [signal.getsignal(number) for number in NUMBERS] == before
