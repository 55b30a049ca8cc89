"""A store of many conversations: what people and tools say is cut from the standard library."""

import random
import sysconfig
from functools import partial
from pathlib import Path

from tests.benchmarks import workload

EVENTS = 200
"""The most that a conversation has. Short ones are as many as long ones, by orders of magnitude."""
DIRECTORIES = 100
RARE, FREQUENT = "zugzwang", "return"
"""The rare word stands in one conversation of a thousand."""
_TEXTS = 3_000


def texts():
    """Return pieces of the standard library's sources, of 1 KB or so, always the same."""
    rng = random.Random(1)
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    lines = [line for path in sources for line in path.read_text("utf-8", "replace").splitlines()]
    starts = [rng.randrange(len(lines) - 40) for _ in range(_TEXTS)]
    return ["\n".join(lines[start : start + rng.randrange(4, 40)]) for start in starts]


def fill(folder, count):
    """Write *count* conversations with 1 to 200 events each, in a hundred directories."""
    rng, said = random.Random(2), texts()
    with workload.conversations(folder) as app:
        for number in range(count):
            cwd = f"/work/project-{number % DIRECTORIES}"
            at_hand = app.start(partial(workload.begin, cwd=cwd))
            messages = round(EVENTS ** rng.random()) - 4
            chosen = [rng.choice(said) for _ in range(max(messages, 1))]
            if number % 1_000 == 500:
                chosen[-1] += f"\n{RARE}"
            at_hand.record(partial(_append_all, chosen))


def _append_all(chosen, talk):
    for number, text in enumerate(chosen):
        _append(talk, number, text)


def _append(talk, number, text):
    call_id = f"toolu_{number // 3:08d}"
    match number % 3:
        case 0:
            talk.append_prompt(text)
        case 1:
            call = {"command": text[:200], "timeout": 120}
            asked = {"type": "tool_use", "id": call_id, "name": "bash", "input": call}
            usage = {"input_tokens": 1000, "output_tokens": 300}
            said = [{"type": "text", "text": text[200:]}, asked] if text[200:].strip() else [asked]
            talk.append_answer(said, stop_reason="tool_use", usage=usage)
        case _:
            talk.append_tool_result(call_id, text, is_error=number % 9 == 2)
