"""Sixty turns in a small window, killed twice: never an invalid request, nothing forgotten."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID

from app.application import Conversations
from app.verification import verify
from domain.events import Compacted
from infrastructure.model import offline
from tests.app.doubles import Desk
from tests.server import ScriptedServer

WINDOW = 8_000
ROOT = Path(__file__).parents[2]


class Killer:
    """Answers by rule; kills the program when it sends one of the requests *at*."""

    def __init__(self, *at):
        self.at = set(at)
        self.count = 0
        self.program = None

    def __call__(self, request):
        self.count += 1
        assert offline.count_tokens(request) + request["max_tokens"] <= WINDOW
        if self.count in self.at:
            os.kill(self.program.pid, signal.SIGKILL)
        return offline.respond(request)


def test_sixty_turns_in_a_small_window_killed_twice(tmp_path):
    killer = Killer(31, 67)
    id_file, store = tmp_path / "id", tmp_path / "store"
    environment = {"LEFTFOLD_STORE": str(store), "LEFTFOLD_DURABILITY": "os"}
    with ScriptedServer([killer] * 600) as server:
        done = []
        for first, last in ((0, 60), (20, 60), (40, 60)):
            arguments = [server.url, str(store), str(id_file), str(first), str(last)]
            killer.program = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.app.sixty_turns", *arguments],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
            done.append(killer.program.wait(120))
        assert done == [-signal.SIGKILL, -signal.SIGKILL, 0]

        with Conversations(environment) as conversations:
            conversation_id = UUID(id_file.read_text())
            at_hand = conversations.open(conversation_id)
            desk = Desk(conversations, server, tmp_path, at_hand=at_hand, window=WINDOW)
            asyncio.run(desk.say("what did I ask you?"))
            talk = desk.talk
            report = verify(conversations, conversation_id)

    compactions = [entry for entry in talk.entries.values() if isinstance(entry, Compacted)]
    answers = [e for e in talk.entries.values() if getattr(e, "request_digest", None)]
    assert len(compactions) >= 3
    assert "XYZZY" in talk.messages()[-1].content.text
    assert report.ok
    summaries = sum(len(compaction.asked.steps) for compaction in compactions)
    assert report.requests_proven - summaries == len(answers) >= 60
