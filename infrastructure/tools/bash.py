"""The tool that runs a shell command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from domain.tool_use import Plan, ToolOutput
from infrastructure.errors import ToolError
from infrastructure.tools.process import notes, run_shell
from infrastructure.tools.tool import Arguments, Tool

if TYPE_CHECKING:
    from infrastructure.tools.output import ToolContext


class BashInput(Arguments):
    """A command and how long it may take."""

    command: str = Field(min_length=1, description="The command, as you would type it in bash")
    timeout: float = Field(
        120,
        gt=0,
        le=3600,
        description="Seconds after which the command and all its children are killed",
    )


class Bash(Tool[BashInput]):
    """Runs a command; see `infrastructure.tools.process` for what it can and cannot do to us."""

    name = "bash"
    description = (
        "Run a command with bash in the working directory and return its stdout and stderr, "
        "merged. Every call is a fresh shell: `cd` and variables do not carry over. There is no "
        "terminal and no input: commands cannot ask questions, so pass flags like --yes. An exit "
        "code other than 0 is reported as an error. Of more than 2,000 lines or 50 KiB you see "
        "the beginning and the end, and the path of a file that has all of it. To keep a server "
        "running, start it in the background with its output in a file: `server > log 2>&1 &`."
    )
    Input = BashInput

    def _summary(self, call: BashInput) -> str:
        return f"$ {call.command}"

    async def _plan(self, call: BashInput, context: ToolContext) -> Plan:
        if "\0" in call.command:
            raise ToolError("A command cannot contain a NUL character.")
        return await super()._plan(call, context)

    async def _run(self, call: BashInput, context: ToolContext) -> ToolOutput:
        ended = await run_shell(call.command, seconds=call.timeout, context=context)
        said = notes(ended, call.timeout)
        output = ended.output
        if not output.strip():
            output = "(only blank output)" if output else "(no output)"
        if said:
            output = "\n".join([output.removesuffix("\n"), *said])
        return ToolOutput(output, is_error=ended.timed_out or ended.status != 0)
