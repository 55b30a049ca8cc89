"""The picker: which conversation to go on with; and, on the way, tidying up among them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from app.catalogue import rows
from app.explanations import EXPECTED, message_of
from app.i18n import _
from app.repl.chooser import Choice, Chooser
from app.repl.finder import Finder
from app.repl.line_session import ask_line
from app.view.plain import cells, one_line, plain
from domain.conversation import Conversation
from domain.events import MessageAppended, NoteAppended
from domain.projections.catalogue import TITLE_LENGTH
from domain.projections.texts import excerpt, folded
from infrastructure.jsonl import trash

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from app.application import Conversations
    from app.repl.chooser import Chosen
    from domain.events import Version
    from domain.projections.catalogue import Row
    from infrastructure.read_models.texts import Hit

_HINT = "Enter goes on · Tab here/all · Ctrl+R rename · Ctrl+A archive · Ctrl+D delete · Esc leaves"
_ACTIONS = {"tab": "scope", "c-r": "rename", "c-a": "archive", "c-d": "delete"}
_PREVIEWED_EVENTS = 24
_PREVIEW_WIDTH = 200
_EXCERPT = 120
_LINES, _LINES_BEFORE = 8, 3


class Place(NamedTuple):
    """A conversation, and an entry in it, if it was found by that."""

    conversation: UUID
    entry: Version | None = None


class Picker:
    """Picks a conversation of the directory *cwd*, or of all."""

    def __init__(
        self, conversations: Conversations, cwd: str, *, current: UUID | None = None
    ) -> None:
        self._conversations = conversations
        self._cwd = cwd
        self._current = current
        self._is_everywhere = False
        self._previews: dict[UUID, str] = {}
        self._listed: dict[UUID, Row] = {}
        self._surroundings: dict[Place, str] = {}

    async def pick(self) -> Place | None:
        """Return the conversation that was picked, and the entry that was found; None for none."""
        self._is_everywhere = not self._rows()
        at, wanted, notice = None, "", ""
        while True:
            self._listed = {row.id: row for row in self._rows()}
            title = (f"{notice} · " if notice else "") + self._title()
            chosen, wanted = await self._ask(title, at, wanted)
            if chosen is None or chosen.action == "enter":
                return chosen.value if chosen else None
            at = chosen.value
            notice = await self._act(chosen.action, self._listed[at.conversation])

    async def _ask(
        self, title: str, at: Place | None, wanted: str
    ) -> tuple[Chosen[Place] | None, str]:
        """Ask once; return what was chosen, and what was typed to filter by."""
        loop = asyncio.get_running_loop()

        def found(words: str, hits: Sequence[Hit]) -> None:
            loop.call_soon_threadsafe(lambda: chooser.offer(words, self._found(words, hits)))

        def tell(text: str) -> None:
            loop.call_soon_threadsafe(lambda: chooser.note(text))

        finder = Finder(self._conversations, within=frozenset(self._listed), tell=tell, found=found)
        chooser = Chooser(
            title,
            [self._choice(row) for row in self._listed.values()],
            actions=_ACTIONS,
            hint=_(_HINT),
            preview=self._preview,
            at=at,
            wanted=wanted,
            look_for=finder.look_for,
        )
        with finder:
            return await chooser.ask(), chooser.wanted

    def _found(self, words: str, hits: Sequence[Hit]) -> list[Choice[Place]]:
        """Return rows for texts in which *words* stand, each with the line in which they do."""
        first = folded(words.split(maxsplit=1)[0]) if words.split() else ""
        choices = []
        for hit in hits:
            row = self._listed[hit.conversation]
            if row.title and " ".join(hit.text.split())[:TITLE_LENGTH] == row.title:
                continue  # it is listed by its title
            place = Place(hit.conversation, hit.version)
            self._surroundings[place] = _around(hit.text, first)
            when = row.updated.astimezone().strftime("%Y-%m-%d %H:%M")
            line = one_line(excerpt(hit.text, first, _EXCERPT), _EXCERPT)
            text = f"{when}  {one_line(row.title, 24)} @{hit.version}: {line}"
            choices.append(Choice(place, text))
        return choices

    def _rows(self) -> list[Row]:
        """Return what is listed: of this directory, without what was put away; or all."""
        if self._is_everywhere:
            return rows(self._conversations)
        return [row for row in rows(self._conversations, cwd=self._cwd) if not row.archived]

    def _title(self) -> str:
        here = _("conversations of {cwd}").format(cwd=plain(self._cwd))
        where = _("all conversations") if self._is_everywhere else here
        return _("Resume: {where}").format(where=where)

    def _choice(self, row: Row) -> Choice[Place]:
        when = row.updated.astimezone().strftime("%Y-%m-%d %H:%M")
        title = one_line(row.title, 100) or _("(no prompt yet)")
        mark = _("(archived) ") if row.archived else ""
        text = f"{when}  {mark}{title}"
        if self._is_everywhere:
            text += " " * max(64 - cells(text), 2) + plain(row.cwd or "?")
        return Choice(Place(row.id), text, "class:dim" if row.archived else "")

    async def _act(self, action: str, row: Row) -> str:
        """Do what a key other than Enter asks for; return what to say of it."""
        try:
            match action:
                case "scope":
                    self._is_everywhere = not self._is_everywhere
                case "rename":
                    name = await ask_line(_("New name: "), row.name or "")
                    if name is not None:
                        rename = partial(Conversation.rename, name=name)
                        self._conversations.open(row.id).record(rename)
                case "archive":
                    archive = partial(Conversation.archive, archived=not row.archived)
                    self._conversations.open(row.id).record(archive)
                    return _("brought back") if row.archived else _("archived; Tab shows it")
                case "delete":
                    return await self._delete(row)
        except EXPECTED as error:
            return one_line(message_of(error), 120)
        return ""

    async def _delete(self, row: Row) -> str:
        if row.id == self._current:
            return _("this is the conversation at hand: not deleted")
        if self._conversations.store is None:
            return _("deleting needs a store of files")
        title = one_line(row.title, 60)
        answer = await ask_line(_("Move “{title}” to the trash? [y/N] ").format(title=title))
        if (answer or "").lower() not in ("y", "yes"):
            return _("not deleted")
        path = trash.put(self._conversations.store, row.id)
        return _("moved to {path}").format(path=plain(str(path)))

    def _preview(self, place: Place) -> str:
        """Return what was found; else the last that was said, read from the end of the log."""
        if place in self._surroundings:
            return self._surroundings[place]
        conversation_id = place.conversation
        if conversation_id not in self._previews:
            try:
                self._previews[conversation_id] = self._last_words(conversation_id)
            except EXPECTED as error:
                self._previews[conversation_id] = one_line(str(error), _PREVIEW_WIDTH)
        return self._previews[conversation_id]

    def _last_words(self, conversation_id: UUID) -> str:
        last = self._conversations.last_event_of(conversation_id)
        since = max(last.originator_version - _PREVIEWED_EVENTS, 1) if last else 1
        lines = []
        for event in self._conversations.events_of(conversation_id, since=since):
            match event:
                case MessageAppended() if event.content.text:
                    mark = "›" if event.content.role == "user" else " "
                    lines.append(f"{mark} {one_line(event.content.prompt, _PREVIEW_WIDTH)}")
                case MessageAppended():
                    calls = ", ".join(call["name"] for call in event.content.tool_uses)
                    lines += [f"● {plain(calls)}"] if calls else []
                case NoteAppended(content=content):
                    lines.append(f"✎ {one_line(content, _PREVIEW_WIDTH)}")
        return "\n".join(lines) or _("(nothing was said)")


def _around(text: str, wanted: str) -> str:
    """Return some lines of *text* around the one in which *wanted* stands, which is folded."""
    lines = text.splitlines()
    found = next((number for number, line in enumerate(lines) if wanted in folded(line)), 0)
    start = max(found - _LINES_BEFORE, 0)
    return "\n".join(one_line(line, _PREVIEW_WIDTH) for line in lines[start : start + _LINES])
