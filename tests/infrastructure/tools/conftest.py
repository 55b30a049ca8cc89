import asyncio
import contextlib
import os
import signal

import pytest

from domain.tool_use import ToolOutput
from infrastructure.tools import TOOLS, ToolContext

BOUND = 20  # seconds; less than any sleep in these tests, more than any machine needs


@pytest.fixture
def context(tmp_path):
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    return ToolContext(cwd, tmp_path / "outputs", "toolu_01")


@pytest.fixture
def call(context):
    """Run one call of a tool and return its output, or fail if it takes too long."""
    tools = {tool.name: tool for tool in TOOLS}

    def run(name, **arguments) -> ToolOutput:
        running = tools[name].run(arguments, context)
        return asyncio.run(asyncio.wait_for(running, BOUND))

    return run


@pytest.fixture
def reap():
    """Kill, after the test, the processes that it leaves running on purpose."""
    processes = []
    yield processes.append
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(os.getpgid(process), signal.SIGKILL)
