"""`leftfold recover` saves what can be saved into a new conversation, and touches nothing else."""

import json
import re

import pytest
from click.testing import CliRunner
from eventsourcing.cipher import AESCipher
from hypothesis import given, settings
from hypothesis import strategies as st

from app.application import Conversations
from app.cli import leftfold
from app.errors import LockedConversationError
from app.recovery import NothingToRecoverError, recover
from app.verification import verify
from domain.calls import NEVER_STARTED, OUTCOME_UNKNOWN
from domain.events import MessageAppended, NoteAppended, Started
from domain.projections.context import context, request_of
from domain.renumbering import IN_PART, LOST_HERE
from infrastructure.errors import NewerFormatError
from tests import builders as b
from tests.api_rules import violations
from tests.faults.damage import (
    Scribe,
    corrupted,
    histories,
    history_of,
    hospital,
)
from tests.levels import examples

WHOLE = history_of(["answer", "call", "prompt", "answer", "branch", "prompt", "mark", "compact"])


def line_with(history, text):
    """The number, counted from the header, of the only line that holds *text*."""
    [number] = [n for n, line in enumerate(history.data.split(b"\n")) if text in line]
    return number


def without(history, *numbers):
    lines = history.data.splitlines(keepends=True)
    return b"".join(line for number, line in enumerate(lines) if number not in numbers)


def changed(history, number, change):
    """The log with *change* made to one line."""
    lines = history.data.split(b"\n")
    lines[number] = change(lines[number])
    return b"\n".join(lines)


def saved(history, data):
    """Recover a damaged log, check what always holds; return what was done, old and new."""
    with hospital(history, data) as conversations:
        path = conversations.store.path_of(history.id)
        before = {each: each.read_bytes() for each in path.parent.glob("*.jsonl")}
        done = recover(conversations, history.id, cwd="/elsewhere")
        conversations.store.close()
        report = verify(conversations, done.id)

        assert report.findings == ()
        assert report.requests_proven == done.proofs_kept
        assert all(each.read_bytes() == content for each, content in before.items())
        talk = conversations.get(done.id)
        for leaf in [None, *talk.entries]:
            assert violations(context(talk, leaf)) == []
        assert talk.version == done.events
        assert talk.origin.source_id == history.id
        assert done.id in list(conversations.ids())
        lines = conversations.store.inspect(history.id).lines
        return done, conversations.get(history.id) if lines else None, talk


def texts(talk):
    return [m.content.text for m in talk.messages()]


def notes(talk):
    return [e.content for e in talk.path(talk.leaf) if isinstance(e, NoteAppended)]


# -- what always holds ---------------------------------------------------------------------------


def test_of_a_whole_log_all_is_saved_and_every_proof_holds():
    done, old, new = saved(WHOLE, WHOLE.data)

    assert (done.lost, done.fates, done.proofs_dropped) == ((), (), 0)
    assert done.proofs_kept == 3
    assert done.saved == len(WHOLE.lines)
    assert request_of(new, new.leaf) == request_of(old, old.leaf)
    assert (new.name, new.labels, new.cwd) == (old.name, old.labels, old.cwd)


@settings(max_examples=examples(120))
@given(histories, st.data())
def test_whatever_happens_to_a_log_what_is_saved_is_clean(history, data):
    hurt = data.draw(corrupted(history))
    with hospital(history, hurt) as conversations:
        try:
            done = recover(conversations, history.id, cwd="/elsewhere")
        except NothingToRecoverError:
            assert list(conversations.store.inspect(history.id).lines) == []
            return
        except NewerFormatError:
            return
        assert conversations.store.path_of(history.id).read_bytes() == hurt
        believed = len(conversations.store.inspect(history.id).lines)
        report = verify(conversations, done.id)
        talk = conversations.get(done.id)

        assert report.findings == ()
        assert done.saved + done.in_part >= believed
        assert violations(context(talk, talk.leaf)) == []
        conversations.open(done.id).record(lambda talk: talk.append_prompt("and on"))


@settings(max_examples=examples(40))
@given(histories, st.data())
def test_what_is_recovered_says_what_was_said(history, data):
    """Nothing that can be read in the damaged log is missing in the new one."""
    hurt = data.draw(corrupted(history, kinds=("nul_run", "cut", "lost_lines"), most=2))
    with hospital(history, hurt) as conversations:
        try:
            done = recover(conversations, history.id, cwd="/elsewhere")
        except NothingToRecoverError:
            return
        new = conversations.get(done.id)
        if conversations.store.inspect(history.id).lines:
            old = conversations.get(history.id)
            said = {str(m.content) for m in old.entries.values() if isinstance(m, MessageAppended)}
            assert said <= {
                str(m.content) for m in new.entries.values() if isinstance(m, MessageAppended)
            }


# -- damaged lines that can be understood in part ------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"v":', b'"w":', 1),
        lambda line: line.replace(b'"MessageAppended"', b'"Message', 1),
        lambda line: b"\xff" + line[1:],
        lambda line: line[:-2],
        lambda line: line[line.index(b'"state"') :],
        lambda line: re.sub(rb'"v":\d+', b'"v":1', line),
    ],
    ids=["no version", "no topic", "first byte", "end", "state alone", "another's version"],
)
def test_an_event_whose_state_is_whole_is_saved_whole_however_its_envelope_is(change):
    number = line_with(WHOLE, b'"text":"2 ')
    done, _, new = saved(WHOLE, changed(WHOLE, number, change))

    assert done.saved == len(WHOLE.lines)
    assert (done.lost, done.proofs_dropped) == ((), 0)
    assert [fate.fate for fate in done.fates] == [f"saved as version {number}"]
    assert any(text.startswith("2 ") for text in texts(new))


def test_of_a_torn_line_the_text_is_saved_as_a_note_that_says_so():
    number = line_with(WHOLE, b'"text":"2 ')
    done, _, new = saved(WHOLE, changed(WHOLE, number, lambda line: line[: line.index(b"lines")]))

    assert done.in_part == 1
    [note] = [text for text in notes(new) if text.startswith(IN_PART)]
    assert note == f"{IN_PART}\nThe model said:\n2 two\n"


def test_a_string_that_ends_in_an_escape_is_saved_up_to_there():
    scribe = history_of([])
    number = line_with(scribe, b"MessageAppended")
    torn = changed(scribe, number, lambda line: line[: line.index(b"quoted") + 7])
    done, _, new = saved(scribe, torn)

    assert done.in_part == 1
    assert notes(new) == [f'{IN_PART}\nThe user said:\n1 a "quoted']


def test_lines_that_were_moved_are_put_back_in_their_places():
    lines = WHOLE.data.splitlines(keepends=True)
    moved = b"".join([*lines[:6], lines[8], *lines[6:8], *lines[9:]])
    done, _, new = saved(WHOLE, moved)

    assert done.saved == len(WHOLE.lines)
    assert done.proofs_kept == 3
    assert texts(new) == texts(saved(WHOLE, WHOLE.data)[2])


def test_lines_that_stand_there_twice_are_saved_once():
    lines = WHOLE.data.splitlines(keepends=True)
    done, _, _ = saved(WHOLE, b"".join([*lines[:9], *lines[5:]]))

    assert {fate.fate for fate in done.fates} == {"there already"}
    assert done.saved == len(WHOLE.lines)


def test_a_line_of_another_conversation_is_kept_out_of_the_models_sight():
    other = Scribe()
    other.talk.append_prompt("the secret of another")
    other.save()
    from infrastructure.jsonl.log_file import encoded

    [foreign] = encoded(other.saves[-1])
    lines = WHOLE.data.splitlines(keepends=True)
    done, _, new = saved(WHOLE, b"".join([*lines[:9], foreign, *lines[9:]]))

    assert [fate.fate for fate in done.fates] == ["does not belong here: saved as a hidden note"]
    assert "the secret" not in json.dumps(context(new, new.leaf))
    assert any("the secret" in text for text in notes(new))


# -- what is lost --------------------------------------------------------------------------------


def test_a_lost_entry_is_named_in_the_context_and_what_hung_from_it_still_hangs_together():
    number = line_with(WHOLE, b'"text":"2 ')
    done, old, new = saved(WHOLE, without(WHOLE, number))

    assert done.lost == ((number, number),)
    assert done.proofs_dropped == 2
    assert LOST_HERE in notes(new)
    assert texts(new) == texts(old)


def test_an_entry_that_hangs_from_a_fact_hangs_from_a_note():
    """Lines of another conversation: version 2 is an entry there, and a fact here."""
    history = history_of([])
    line = b'{"v":5,"topic":"NoteAppended","state":{"timestamp":"2026-01-02T03:04:09Z","parent":2,"kind":"x","content":"foreign","visible":true}}\n'
    _, _, new = saved(history, history.data + line)

    assert notes(new)[-1] == "foreign"
    assert LOST_HERE in notes(new)


def test_a_lost_fact_costs_no_proof():
    numbers = [n for n, line in enumerate(WHOLE.data.split(b"\n")) if b"TurnEnded" in line]
    done, _, new = saved(WHOLE, without(WHOLE, numbers[0]))

    assert done.proofs_dropped == 0
    assert LOST_HERE not in notes(new)


def test_what_was_withheld_is_what_is_withheld():
    history = history_of(["answer", "prompt", "call", "withhold", "prompt", "answer"])
    lost = next(n for n, line in enumerate(history.data.split(b"\n")) if b"TurnEnded" in line)
    done, old, new = saved(history, without(history, lost))

    assert done.proofs_dropped == 0
    assert {target for _, target, _ in new.withheld} < set(new.entries)
    assert len(new.withheld) == len(old.withheld)
    assert request_of(new, new.leaf) == request_of(old, old.leaf)


@pytest.mark.parametrize("deeds", [["call"], ["call", "prompt", "answer"]], ids=["end", "middle"])
def test_of_a_call_whose_start_may_be_lost_it_is_never_said_that_it_did_not_start(deeds):
    """The log loses what came right after the call: its tool may have run."""
    history = history_of(deeds)
    first = next(n for n, line in enumerate(history.data.split(b"\n")) if b"ToolStarted" in line)
    lines = history.data.split(b"\n")
    for number in range(first, first + 3):
        lines[number] = b"\0" * len(lines[number])
    _, _, new = saved(history, b"\n".join(lines))
    sent = json.dumps(context(new, new.leaf))
    [call] = [name for name in ("call_1_a", "call_0_a", "call_2_a") if name in sent]

    assert new.outcome_of(call, asked_at=_asked(new)) == OUTCOME_UNKNOWN
    if deeds == ["call"]:
        assert sent.count(OUTCOME_UNKNOWN) == 3
        assert NEVER_STARTED not in sent


def _asked(talk):
    """The entry that asked for the calls."""
    return next(v for v, e in talk.entries.items() if getattr(e, "stop_reason", "") == "tool_use")


def test_the_first_event_and_the_header_may_be_gone():
    lines = WHOLE.data.splitlines(keepends=True)
    done, _, new = saved(WHOLE, b"".join(lines[2:]))

    assert done.lost == ((1, 1),)
    assert new.cwd == "/elsewhere"
    assert done.proofs_dropped == 0


def test_what_was_queued_is_still_queued():
    history = history_of(["queue", "answer", "queue"])
    _, old, new = saved(history, history.data)

    texts = [[event.text for event in talk.queued.values()] for talk in (new, old)]
    assert texts[0] == texts[1] != []


def test_a_save_that_never_was_is_not_brought_to_life():
    history = history_of(["answer"])
    unsaved = b'{"v":90,"topic":"Renamed","state":{"timestamp":"2026-01-02T03:04:05Z","name":"never"},"batch":[1,2]}\n'
    done, _, new = saved(history, history.data + unsaved)

    assert [fate.fate for fate in done.fates] == ["was never saved"]
    assert new.name is None


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 4000, b"nothing\nof\nit\n", WHOLE.data.partition(b"\n")[0] + b"\n"],
    ids=["empty", "NULs", "garbage", "header alone"],
)
def test_where_nothing_can_be_saved_nothing_is_made(data):
    with hospital(WHOLE, data) as conversations:
        with pytest.raises(NothingToRecoverError):
            recover(conversations, WHOLE.id, cwd="/elsewhere")

        assert list(conversations.ids()) == [WHOLE.id]
        assert conversations.store.path_of(WHOLE.id).read_bytes() == data


def test_over_another_persistence_module_what_is_there_is_copied():
    with Conversations({"PERSISTENCE_MODULE": "eventsourcing.popo"}, clock=b.Clock()) as talks:
        at_hand = talks.start(lambda i, t: b.Conversation.start(i, timestamp=t, cwd="/work"))
        at_hand.record(lambda talk: talk.append_prompt("hello"))
        done = recover(talks, at_hand.id, cwd="/elsewhere")

        assert texts(talks.get(done.id)) == ["hello"]
        assert isinstance(next(iter(talks.events_of(done.id))), Started)


def test_a_compressed_log_is_recovered_too_but_not_without_its_compressor(tmp_path):
    environment = {"LEFTFOLD_STORE": str(tmp_path), "LEFTFOLD_DURABILITY": "os"}
    compressed = environment | {"COMPRESSOR_TOPIC": "zlib"}
    with Conversations(compressed, clock=b.Clock()) as talks:
        at_hand = talks.start(lambda i, t: b.Conversation.start(i, timestamp=t, cwd="/work"))
        at_hand.record(lambda talk: talk.append_prompt("hello"))
        path = talks.store.path_of(at_hand.id)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'{"v":2,', b'{"w":2,'))

    with Conversations(environment) as talks, pytest.raises(NothingToRecoverError):
        recover(talks, at_hand.id, cwd="/elsewhere")
    with Conversations(compressed) as talks:
        done = recover(talks, at_hand.id, cwd="/elsewhere")
        assert texts(talks.get(done.id)) == ["hello"]
        assert verify(talks, done.id).findings == ()


def test_with_a_wrong_key_nothing_is_made(tmp_path):
    cipher = {"CIPHER_TOPIC": "eventsourcing.cipher:AESCipher", "LEFTFOLD_STORE": str(tmp_path)}
    with Conversations(cipher | {"CIPHER_KEY": AESCipher.create_key(16)}) as talks:
        at_hand = talks.start(lambda i, t: b.Conversation.start(i, timestamp=t, cwd="/work"))
        at_hand.record(lambda talk: talk.append_prompt("hello"))

    with Conversations(cipher | {"CIPHER_KEY": AESCipher.create_key(16)}) as talks:
        with pytest.raises(LockedConversationError):
            recover(talks, at_hand.id, cwd="/elsewhere")
        assert list(talks.ids()) == [at_hand.id]


# -- the command ---------------------------------------------------------------------------------


def run(folder, *arguments):
    return CliRunner().invoke(leftfold, ["--store", str(folder), *map(str, arguments)])


def test_the_command_prints_the_new_id_and_what_became_of_each_place(tmp_path):
    path = tmp_path / f"{WHOLE.id}.jsonl"
    number = line_with(WHOLE, b'"text":"2 ')
    path.write_bytes(changed(WHOLE, number, lambda line: b"\0" * len(line)))
    done = run(tmp_path, "recover", WHOLE.id)

    assert done.exit_code == 0
    new = done.stdout.strip()
    assert (tmp_path / f"{new}.jsonl").exists()
    assert f"line {number + 1}" in done.stderr
    assert "NUL bytes: lost" in done.stderr
    assert f"lost versions: {number}" in done.stderr
    assert run(tmp_path, "verify", new).exit_code == 0
    assert run(tmp_path, "verify", WHOLE.id).exit_code == 1


def test_the_command_in_json(tmp_path):
    (tmp_path / f"{WHOLE.id}.jsonl").write_bytes(without(WHOLE, 6))
    done = json.loads(run(tmp_path, "recover", WHOLE.id, "--json").stdout)

    assert done["source"] == str(WHOLE.id)
    assert done["lost"] == [[6, 6]]
    assert (tmp_path / f"{done['id']}.jsonl").exists()
