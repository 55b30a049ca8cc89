"""A program that talks in one conversation, to be killed: URL STORE ID-FILE FIRST LAST."""

import asyncio
import sys
from pathlib import Path
from uuid import UUID

from app.application import Conversations
from tests.app.doubles import Desk, begin

PROMPTS = ("read notes-{n}.txt", "run: seq {n} 150", "think about number {n}", "what is {n}?")


async def talk(url, store, id_file, first, last):
    with Conversations({"LEFTFOLD_STORE": store, "LEFTFOLD_DURABILITY": "os"}) as conversations:
        if id_file.exists():
            at_hand = conversations.open(UUID(id_file.read_text()))
        else:
            at_hand = conversations.start(begin(str(id_file.parent), max_tokens=2_000))
        server = type("Server", (), {"url": url})
        desk = Desk(conversations, server, id_file.parent, at_hand=at_hand, window=8_000)
        if not id_file.exists():
            await desk.agent.run_turn("The password of this task is XYZZY; remember it")
            id_file.write_text(str(at_hand.id))
        for n in range(first, last):
            await desk.agent.run_turn(PROMPTS[n % len(PROMPTS)].format(n=n))
        await desk.model.close()


if __name__ == "__main__":
    url, store, id_file, first, last = sys.argv[1:]
    asyncio.run(talk(url, store, Path(id_file), int(first), int(last)))
