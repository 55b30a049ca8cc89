"""``/copy``: an answer, or a code block of it, on the clipboard.

By the terminal (OSC 52), which also works over SSH and inside tmux and screen, and by the
platform's own program where there is one. Nobody says whether a terminal did it.
"""

from __future__ import annotations

import os
from base64 import b64encode
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Final

from app.i18n import _
from app.view.console import is_fancy
from app.view.markdown_stream import parser
from app.view.plain import plain
from domain.errors import InvalidCommandError
from domain.events import MessageAppended

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.repl.desk import Desk
    from domain.conversation import Conversation

MOST: Final = 74_994
"""Bytes that go through a terminal: 100,000 characters of base64, which most take at once."""

_SCREENS_MOST = 700  # of one string, which GNU screen cuts at 768
_SECONDS = 3.0


async def copy(desk: Desk, arguments: str) -> None:
    """Copy what *arguments* says: the number of a code block, or nothing for the whole answer.

    Raises:
        InvalidCommandError: there is nothing of that kind, or nothing to copy it by.
    """
    answer = last_answer(desk.conversation)
    if not answer:
        raise InvalidCommandError(_("There is no answer to copy yet."))
    text, name = answer, _("the last answer")
    if arguments:
        text, name = _block(answer, arguments)
    size = _("{lines:,} lines, {characters:,} characters").format(
        lines=text.count("\n") + 1, characters=len(text)
    )
    by_program = _by_program(text)
    by_terminal = is_fancy(desk.console) and len(text.encode()) <= MOST
    if by_terminal:
        desk.console.file.write(sequence(text, os.environ))
        desk.console.file.flush()
    if by_program:
        message = _("Copied {name}: {size}.")
    elif by_terminal:
        message = _("Sent {name} to the terminal's clipboard, if it has one: {size}.")
    elif is_fancy(desk.console):
        raise InvalidCommandError(
            _(
                "Not copied: {size} are more than goes through a terminal ({most:,} bytes), and "
                "there is no program for it (xclip, xsel, wl-copy, pbcopy)."
            ).format(size=size, most=MOST)
        )
    else:
        raise InvalidCommandError(
            _("Not copied: there is neither a terminal that can, nor a program for it.")
        )
    desk.say(message.format(name=name, size=size))


def last_answer(conversation: Conversation) -> str:
    """Return the last answer with words in it, as it is shown; nothing if there is none."""
    for entry in conversation.backwards(conversation.leaf):
        if isinstance(entry, MessageAppended) and entry.content.role == "assistant":
            texts = [
                str(block["text"])
                for block in entry.content.blocks
                if isinstance(block, dict) and block.get("type") == "text"
            ]
            if text := plain("\n\n".join(texts)).strip("\n"):
                return text
    return ""


def code_blocks(answer: str) -> list[str]:
    """Return the code blocks of an answer, wherever in it they stand, without what is around."""
    tokens = parser().parse(plain(answer))
    kinds = ("fence", "code_block")
    return [plain(each.content).removesuffix("\n") for each in tokens if each.type in kinds]


def _block(answer: str, wanted: str) -> tuple[str, str]:
    """Return a code block, and what to call it."""
    blocks = code_blocks(answer)
    if not blocks:
        raise InvalidCommandError(_("The last answer has no code block; /copy copies all of it."))
    if not wanted.isdecimal() or not 1 <= int(wanted) <= len(blocks):
        raise InvalidCommandError(
            _("/copy takes the number of a code block, 1 to {count}, not {wanted!r}.").format(
                count=len(blocks), wanted=wanted
            )
        )
    name = _("code block {number} of {count}").format(number=int(wanted), count=len(blocks))
    return blocks[int(wanted) - 1], name


def sequence(text: str, environment: Mapping[str, str]) -> str:
    r"""Return what tells a terminal to copy *text*: OSC 52, also past tmux or screen.

    tmux heeds it itself or lets it through, as it is configured: it gets both.
    """
    told = f"\x1b]52;c;{b64encode(text.encode()).decode()}\x07"
    if environment.get("TMUX"):
        return told + "\x1bPtmux;" + told.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if environment.get("STY"):
        pieces = [told[at : at + _SCREENS_MOST] for at in range(0, len(told), _SCREENS_MOST)]
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return told


def _by_program(text: str) -> bool:
    """Copy by the platform's program; return whether that was done. One that hangs is left."""
    import pyperclip  # noqa: PLC0415 - only here

    copied: list[bool] = []

    def try_to() -> None:
        with suppress(pyperclip.PyperclipException, OSError):
            pyperclip.copy(text)
            copied.append(True)

    thread = Thread(target=try_to, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    return bool(copied)
