"""What the applications of prompt_toolkit that we lay out ourselves have in common."""

from __future__ import annotations

from typing import Final, TypeVar

from prompt_toolkit.application import Application

SECONDS_FOR_AN_ESCAPE: Final = 0.1
"""How long an Esc may yet become the beginning of another key; everywhere."""

Result = TypeVar("Result")


class InlineApplication(Application[Result]):
    """An application below what was printed, which leaves nothing behind where a window narrows.

    Most terminals break lines in two then: above the cursor there are more than were drawn.
    """

    _columns = 0
    """For how many columns it was drawn last."""

    def _on_resize(self) -> None:
        columns = self._columns = self.output.get_size().columns
        if (drawn := self.renderer.last_rendered_screen) is not None:
            cursor = drawn.get_cursor_position(self.layout.current_window)
            above = (drawn.data_buffer[row] for row in range(cursor.y))
            last_cells = [max((x for x in row if row[x].char != " "), default=0) for row in above]
            if broken := sum(last // columns for last in [*last_cells, cursor.x]):
                self.output.cursor_up(broken)
        super()._on_resize()

    def _redraw(self, render_as_done: bool = False) -> None:  # noqa: FBT001, FBT002 - the library's
        """Draw; where the window is narrower already, not before what SIGWINCH will have done."""
        drawn_for, self._columns = self._columns, self.output.get_size().columns
        if self._columns < drawn_for and self.renderer.last_rendered_screen is not None:
            self._on_resize()
            if not render_as_done:  # it has drawn
                return
        super()._redraw(render_as_done)


def take_escape_soon(app: Application[Result], *, is_key_of_its_own: bool) -> None:
    """Wait only a moment for what may follow an Esc.

    Bytes behind it come at once, if they are one key. Where Esc *is_key_of_its_own*, other keys
    behind it, which it may make another key of, are not waited for any longer either.
    """
    app.ttimeoutlen = SECONDS_FOR_AN_ESCAPE
    if is_key_of_its_own:
        app.timeoutlen = SECONDS_FOR_AN_ESCAPE
