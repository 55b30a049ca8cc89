"""The picker: which conversation to go on with; and, on the way, tidying up among them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.catalogue import rows
from app.explanations import EXPECTED, message_of
from app.i18n import _
from app.repl.chooser import Choice, Chooser
from app.repl.line_session import ask_line
from app.view.plain import cells, one_line, plain
from domain.conversation import Conversation
from domain.events import MessageAppended, NoteAppended
from infrastructure.jsonl import trash

if TYPE_CHECKING:
    from uuid import UUID

    from app.application import Conversations
    from domain.projections.catalogue import Row

_HINT = "Enter goes on · Tab here/all · Ctrl+R rename · Ctrl+A archive · Ctrl+D delete · Esc leaves"
_ACTIONS = {"tab": "scope", "c-r": "rename", "c-a": "archive", "c-d": "delete"}
_PREVIEWED_EVENTS = 24
_PREVIEW_WIDTH = 200


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

    async def pick(self) -> UUID | None:
        """Return the conversation that was picked; None for none."""
        self._is_everywhere = not self._rows()
        at, wanted, notice = None, "", ""
        while True:
            listed = {row.id: row for row in self._rows()}
            chooser = Chooser(
                (f"{notice} · " if notice else "") + self._title(),
                [self._choice(row) for row in listed.values()],
                actions=_ACTIONS,
                hint=_(_HINT),
                preview=self._preview,
                at=at,
                wanted=wanted,
            )
            chosen = await chooser.ask()
            if chosen is None or chosen.action == "enter":
                return chosen.value if chosen else None
            at, wanted = chosen.value, chooser.wanted
            notice = await self._act(chosen.action, listed[at])

    def _rows(self) -> list[Row]:
        """Return what is listed: of this directory, without what was put away; or all."""
        if self._is_everywhere:
            return rows(self._conversations)
        return [row for row in rows(self._conversations, cwd=self._cwd) if not row.archived]

    def _title(self) -> str:
        here = _("conversations of {cwd}").format(cwd=plain(self._cwd))
        where = _("all conversations") if self._is_everywhere else here
        return _("Resume: {where}").format(where=where)

    def _choice(self, row: Row) -> Choice[UUID]:
        when = row.updated.astimezone().strftime("%Y-%m-%d %H:%M")
        title = one_line(row.title, 100) or _("(no prompt yet)")
        mark = _("(archived) ") if row.archived else ""
        text = f"{when}  {mark}{title}"
        if self._is_everywhere:
            text += " " * max(64 - cells(text), 2) + plain(row.cwd or "?")
        return Choice(row.id, text, "class:dim" if row.archived else "")

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

    def _preview(self, conversation_id: UUID) -> str:
        """Return the last that was said, read from the end of the log."""
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
