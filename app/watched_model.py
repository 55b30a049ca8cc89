"""The one place that a request goes through: the screen is told that it goes out, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.ports import Model, Purpose, Screen
    from domain.messages import JsonObject


class WatchedModel:
    """*model*, asked for a *purpose*, in sight of *screen*."""

    def __init__(self, model: Model, screen: Screen, purpose: Purpose) -> None:
        self._model, self._screen, self._purpose = model, screen, purpose

    def stream(self, request: JsonObject) -> AsyncIterator[JsonObject]:
        """Tell the screen, send *request*, and return the events of the answer."""
        self._screen.asking(self._purpose)
        return self._model.stream(request)
