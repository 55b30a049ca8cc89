"""Who watches a turn at a terminal: what is finished stays, what is under way moves.

Whatever is complete (a Markdown block, a tool's output) is printed once and belongs to the
terminal's scrollback; only what is under way stands at the bottom of the screen, and is drawn again
and again. Without escape codes (no terminal, TERM=dumb) everything is printed as it comes, and
nothing moves.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from rich.text import Text

from app.i18n import _
from app.repl.under_way import Block, Running, UnderWay, flat, folded, markdown, took
from app.view.console import is_fancy, say
from app.view.plain import one_line, plain
from app.view.tools import show_output
from app.view.transcript import PROMPT_MARK
from domain.messages import JsonObject, ToolUseBlock, result_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, RenderableType

    from app.ports import Purpose
    from app.repl.bottom import Bottom
    from app.repl.type_ahead import Waiting
    from domain.events import TurnError
    from domain.tool_use import ToolOutput

STOPS = {
    "max_tokens": "The answer hit its length limit.",
    "model_context_window_exceeded": "The conversation has filled the model's context window.",
    "refusal": "The model declined to answer.",
}
WAITS = {
    "answer": "waiting for the first token",
    "summary": "summarising",
}
_ERROR_WIDTH = 600


class RichScreen:
    """Shows turns on *console*, what is under way at the *bottom*; *clock* counts seconds.

    Attributes:
        on_request: Called whenever a request goes out.
    """

    def __init__(
        self,
        console: Console,
        bottom: Bottom | None = None,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._console = console
        self._clock = clock
        self._fancy = is_fancy(console)
        self._under_way = UnderWay(console, clock)
        self._bottom = bottom
        if bottom is not None:
            bottom.under_way = self._under_way.lines
        self._line_is_open = False  # plain mode: text is being written …
        self._line_ends = False  # … and what was written last ended a line
        self._last_named = ""  # plain mode: the call whose line was printed last
        self.on_request: Callable[[], None] = lambda: None

    # -- the port ------------------------------------------------------------------------------

    def turn_started(self) -> None:
        """A prompt was given; nothing has come back yet."""
        self._wait()

    def asking(self, purpose: Purpose) -> None:
        """A request goes out: from here on the model is waited for."""
        self.on_request()
        self._wait(_(WAITS[purpose]))

    def streamed(self, event: JsonObject) -> None:
        """Show a raw stream event of the answer that is arriving."""
        match event:
            case {"type": "message_start"}:
                self._end_block()
            case {"type": "retry"}:
                self._retrying(event)
            case {"type": "content_block_start", "content_block": dict(start)}:
                self._begin_block(start)
            case {"type": "content_block_delta", "delta": dict(delta)}:
                self._add(delta)
            case {"type": "content_block_stop"}:
                self._end_block()
            case {"type": "message_delta", "delta": {"stop_reason": str(reason)}}:
                self._end_block()
                if reason in STOPS:
                    self._say(_(STOPS[reason]), "yellow")

    def answered(self) -> None:
        """The answer is complete, and in the log."""
        self.rest()

    def tool_started(self, call: ToolUseBlock, summary: str) -> None:
        """A tool begins to run."""
        self._under_way.waiting_since = None
        self._under_way.running[call.id] = Running(flat(summary), self._clock())
        if not self._fancy:
            self._name_call(call.id)
        self._draw()

    def tool_printed(self, call: ToolUseBlock, text: str) -> None:
        """A running tool printed *text*: its last line is shown while it runs."""
        lines = [line for line in text.splitlines() if line.strip()]
        if lines and call.id in self._under_way.running:
            self._under_way.running[call.id].last_line = one_line(lines[-1], self._console.width)

    def tool_ended(self, call: ToolUseBlock, output: ToolOutput) -> None:
        """A tool is done, and its result is in the log."""
        if self._fancy or self._last_named != call.id:
            self._name_call(call.id, "red" if output.is_error else "green")
        self._under_way.running.pop(call.id, None)
        printed = result_text(output.content)
        show_output(self._console, call.name, printed, is_error=output.is_error)
        if not self._under_way.running:
            self._wait()
        self._draw()

    def compacting(self, tokens: int) -> None:
        """The conversation is about to be summarised."""
        self._say(
            _("Compacting the conversation (about {tokens:,} tokens) …").format(tokens=tokens),
            "dim",
        )
        self._wait()
        self._draw()

    def compacted(self, tokens: int) -> None:
        """The conversation is summarised."""
        self.rest()
        self._say(
            _("Compacted: about {tokens:,} tokens now; nothing was deleted.").format(tokens=tokens),
            "dim",
        )

    def turn_ended(self, outcome: str, error: TurnError | None) -> None:
        """The turn is over: done, interrupted or failed."""
        self.rest()
        if outcome == "interrupted":
            self._say(_("Interrupted."), "yellow")
        elif outcome == "failed" or error is not None:
            message = one_line(error.message, _ERROR_WIDTH) if error else _("The turn failed.")
            self._say(message, "red")
            if error and error.request_id:
                request = _("request id {request_id}").format(request_id=plain(error.request_id))
                say(self._console, request, "dim")

    def rest(self) -> None:
        """Nothing is under way any more, whatever happened: leave a clean line."""
        self._end_block()
        for tool_use_id in list(self._under_way.running):
            if self._fancy:
                self._name_call(tool_use_id, "yellow")
            del self._under_way.running[tool_use_id]
        self._under_way.waiting_since = None
        self._last_named = ""
        self._draw()

    def show_waiting(self, waiting: Sequence[Waiting]) -> None:
        """Prompts and commands are *waiting*."""
        self._under_way.queued = tuple(waiting)
        self._draw()

    def prompted(self, text: str) -> None:
        """A queued prompt goes to the model."""
        self._say("\n  ".join(f"{PROMPT_MARK} {plain(text)}".split("\n")), "bold")

    # -- what has come -------------------------------------------------------------------------

    def _retrying(self, event: JsonObject) -> None:
        """Say that the request is sent again, after how long and why."""
        self.rest()
        attempt = _("try {attempt} of {most}").format(
            attempt=event.get("attempt"), most=event.get("of")
        )
        why = one_line(str(event.get("reason")), _ERROR_WIDTH)
        seconds = float(event.get("after") or 0)
        self._say(
            _("Retrying in {seconds:.0f} s, {attempt} ({why}); Esc stops").format(
                seconds=seconds, attempt=attempt, why=why
            ),
            "yellow",
        )
        self._wait(self._under_way.waiting_for)
        self._under_way.pause_ends = self._clock() + seconds

    def _begin_block(self, start: JsonObject) -> None:
        self._end_block()
        kind = str(start.get("type"))
        self._under_way.waiting_since = None
        name = plain(str(start.get("name") or kind))
        self._under_way.block = Block(kind, name=name, since=self._clock())
        self._add({**start, "type": f"{kind}_delta"})

    def _add(self, delta: JsonObject) -> None:
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                self._add_text(text)
            case {"type": "thinking_delta", "thinking": str(text)}:
                self._under_way.block.thinking.append(plain(text))
            case {"type": "input_json_delta", "partial_json": str(text)}:
                self._under_way.block.size += len(text)

    def _add_text(self, text: str) -> None:
        if not self._fancy:
            self._write(plain(text))
            return
        self._under_way.block.since = self._clock()
        if finished := self._under_way.markdown.feed(text):
            self._print(markdown(finished))

    def _end_block(self) -> None:
        """Print what is left of the block that was arriving."""
        block, self._under_way.block = self._under_way.block, Block()
        if rest := self._under_way.markdown.finish():
            self._print(markdown(rest))
        if block.kind in ("thinking", "redacted_thinking"):
            self._say(folded(block, self._clock()), "dim italic")
        elif block.kind not in ("", "text", "tool_use"):
            self._say(f"· {block.name}", "dim")
        if block.kind:
            self._close_line()

    def _wait(self, what: str = "") -> None:
        self._under_way.wait(what)
        self._draw()

    # -- what is printed, for good -------------------------------------------------------------

    def _print(self, renderable: RenderableType) -> None:
        with self._console:  # one write: the region below is drawn once
            self._space()
            self._console.print(renderable, crop=False)  # long lines of code are the terminal's

    def _say(self, line: str, style: str) -> None:
        with self._console:
            self._space()
            say(self._console, line, style)

    def _name_call(self, tool_use_id: str, style: str = "") -> None:
        running = self._under_way.running.get(tool_use_id)
        if running is None:
            return
        self._last_named = tool_use_id
        self._space()
        if self._fancy:
            time = took(self._clock() - running.since)
            self._console.print(
                Text.assemble(("● ", style), (running.summary, "bold"), (time, "dim"))
            )
        else:
            self._console.out(f"● {running.summary}", highlight=False)

    def _write(self, text: str) -> None:
        """Write a piece of text as it came (plain mode)."""
        if not self._line_is_open:
            text = text.lstrip("\n")
            if not text:
                return
            self._space()
        self._line_is_open = True
        self._line_ends = text.endswith("\n")
        self._console.out(text, end="", highlight=False)

    def _space(self) -> None:
        """Separate what comes from what was printed, by one blank line."""
        self._close_line()
        self._console.line()

    def _close_line(self) -> None:
        if self._line_is_open:
            self._line_is_open = False
            if not self._line_ends:
                self._console.line()

    def _draw(self) -> None:
        """Draw at once what has changed; what only goes on is drawn by the clock."""
        if self._bottom is not None:
            self._bottom.draw()
