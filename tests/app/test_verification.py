"""Verification names every damage by its line, and proves every request from the log alone."""

import json
import zlib

import pytest
from click.testing import CliRunner

from app.application import Conversations
from app.cli import leftfold
from app.verification import check_order, verify
from domain.conversation import Conversation
from domain.projections.context import PROJECTION, request_of
from infrastructure.errors import LogMissingError, NewerFormatError
from infrastructure.jsonl import trash
from infrastructure.jsonl.notification_file import RECORD
from tests.builders import BASH, ID


@pytest.fixture
def conversations(home):
    with Conversations({"LEFTFOLD_DURABILITY": "os"}) as application:
        yield application


def begin(conversation_id, timestamp):
    talk = Conversation.start(conversation_id, timestamp=timestamp, cwd="/work")
    talk.change_model("claude-test", max_tokens=1000)
    talk.change_instructions("Be brief.", [BASH])
    return talk


def ask(at_hand, prompt):
    """Record a prompt and an answer with the digest of its request, as the loop does."""
    at_hand.record(lambda talk: talk.append_prompt(prompt))
    talk = at_hand.conversation
    request, version = request_of(talk, talk.leaf), talk.version
    at_hand.record(
        lambda talk: talk.append_answer(
            [{"type": "text", "text": f"You said {prompt}."}],
            stop_reason="end_turn",
            request_digest=request.digest(),
            request_version=version,
        )
    )


@pytest.fixture
def log(conversations):
    """The log of three prompts and answers: nine events, each on the line after its version."""
    at_hand = conversations.start(begin)
    for prompt in ("alpha", "beta", "gamma"):
        ask(at_hand, prompt)
    conversations.store.close()
    return conversations.store.path_of(at_hand.id)


@pytest.fixture
def report(conversations, log):
    """Verify *log* now, after what the test did to it."""

    def look():
        [conversation_id] = conversations.ids()
        with Conversations({"LEFTFOLD_DURABILITY": "os"}) as fresh:
            return verify(fresh, conversation_id)

    return look


def lines_of(log):
    return log.read_bytes().splitlines(keepends=True)


def found(report):
    return [(finding.line, finding.version, finding.what) for finding in report.findings]


def test_a_log_as_it_was_written_is_clean_and_every_request_is_proven(log, report):
    clean = report()

    assert clean.ok
    assert clean.events == 9
    assert clean.requests_proven == 3
    assert clean.bytes == log.stat().st_size


def test_verifying_changes_nothing(log, report):
    log.write_bytes(log.read_bytes() + b'{"v":10,"topic":"Ren')
    before = log.read_bytes()
    others = sorted(log.parent.iterdir())

    assert not report().ok
    assert log.read_bytes() == before
    assert sorted(log.parent.iterdir()) == others


def test_a_changed_prompt_is_found_by_checksum_and_by_the_requests_that_held_it(log, report):
    log.write_bytes(log.read_bytes().replace(b'"text":"beta"', b'"text":"BETA"'))
    damaged = report()

    assert [(line, version) for line, version, _ in found(damaged)] == [(7, 6), (8, 7), (10, 9)]
    assert "checksum" in damaged.findings[0].what
    assert all("digest differs" in finding.what for finding in damaged.findings[1:])
    assert damaged.requests_proven == 1


def test_without_its_checksum_a_changed_prompt_is_found_by_the_requests(log, report):
    lines = lines_of(log)
    number = next(n for n, line in enumerate(lines) if b'"text":"alpha"' in line)
    edited = json.loads(lines[number])
    del edited["crc"]
    edited["state"]["message"]["content"][0]["text"] = "omega"
    lines[number] = json.dumps(edited).encode() + b"\n"
    log.write_bytes(b"".join(lines))
    damaged = report()

    assert damaged.requests_proven == 0
    assert {what for _, _, what in found(damaged)} == {
        "the request that it answers cannot be rebuilt: the digest differs"
    }


def test_a_line_without_a_checksum_is_fine(log, report):
    lines = lines_of(log)
    edited = json.loads(lines[-1])
    del edited["crc"]
    log.write_bytes(b"".join(lines[:-1]) + json.dumps(edited).encode() + b"\n")

    assert report().ok


def test_a_lost_line_is_a_missing_version_a_missing_parent_and_an_unproven_request(log, report):
    lines = lines_of(log)
    number = next(n for n, line in enumerate(lines) if b"You said alpha" in line)
    version = json.loads(lines.pop(number))["v"]
    log.write_bytes(b"".join(lines))
    damaged = report()

    assert (None, version, f"version {version} is missing") in found(damaged)
    assert any(f"parent {version} is not there" in what for _, _, what in found(damaged))
    assert damaged.events == 8


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (b"\0" * 300 + b"\n", "NUL"),
        (b"not json at all\n", "JSON"),
        (b'{"v":2,"topic":"Renamed","state":{"timestamp":"2026-01-01T00:00:00Z"}}\n', "rise"),
    ],
    ids=["NUL run", "garbage", "an old version again"],
)
def test_damage_in_mid_file_costs_itself_and_is_named_by_line(log, report, damage, named):
    lines = lines_of(log)
    log.write_bytes(b"".join([*lines[:7], damage, *lines[7:]]))
    damaged = report()

    assert damaged.events == 9
    assert damaged.requests_proven == 3
    [finding] = damaged.findings
    assert finding.line == 8
    assert finding.offset == sum(map(len, lines[:7]))
    assert named in finding.what


def test_a_torn_tail_is_named(log, report):
    log.write_bytes(log.read_bytes()[:-5])
    damaged = report()

    [finding] = damaged.findings
    assert finding.line == len(lines_of(log))
    assert "torn" in finding.what
    assert damaged.events == 8


def test_two_records_glued_together_are_both_read(log, report):
    """Case D4."""
    lines = lines_of(log)
    log.write_bytes(b"".join([*lines[:7], lines[7].rstrip(b"\n"), *lines[8:]]))
    damaged = report()

    assert damaged.events == 9
    assert damaged.requests_proven == 3


def test_a_damaged_header_and_a_missing_one_are_named(log, report):
    lines = lines_of(log)
    for header in (b"???\n", b""):
        log.write_bytes(b"".join([header, *lines[1:]]))
        damaged = report()

        [finding] = damaged.findings
        assert finding.line == 1
        assert "header" in finding.what
        assert damaged.events == 9


def test_a_log_under_another_name_is_named(conversations, log):
    log.rename(log.with_name(f"{ID}.jsonl"))
    report = verify(conversations, ID)

    [finding] = report.findings
    assert "renamed or copied" in finding.what
    assert report.events == 9


def test_a_topic_that_is_unknown_and_a_state_of_another_shape_are_named(log, report):
    with log.open("ab") as file:
        for version, topic in ((10, "os:system"), (11, "Renamed")):
            line = {"v": version, "topic": topic, "state": {"timestamp": "?", "name": 7}}
            file.write(json.dumps(line).encode() + b"\n")
    damaged = report()

    assert [(line, version) for line, version, _ in found(damaged)] == [(11, 10), (12, 11)]
    assert "unknown topic 'os:system'" in damaged.findings[0].what
    assert "not a Renamed" in damaged.findings[1].what


def test_a_newer_format_and_a_log_that_is_not_there_are_errors(conversations, log):
    with pytest.raises(LogMissingError):
        verify(conversations, ID)
    log.write_bytes(log.read_bytes().replace(b"leftfold/1", b"leftfold/9", 1))
    [conversation_id] = conversations.ids()
    with Conversations() as fresh, pytest.raises(NewerFormatError, match="leftfold/9"):
        verify(fresh, conversation_id)


@pytest.mark.parametrize("damage", ["NUL run", "torn tail", "lost line", "no header"])
def test_a_damaged_conversation_can_be_talked_in(log, report, damage):
    lines = lines_of(log)
    damaged = {
        "NUL run": [*lines[:7], b"\0" * 300 + b"\n", *lines[7:]],
        "torn tail": [*lines[:-1], lines[-1][:-9]],
        "lost line": [*lines[:7], *lines[8:]],
        "no header": lines[1:],
    }[damage]
    log.write_bytes(b"".join(damaged))
    before, findings = log.read_bytes(), len(report().findings)

    with Conversations({"LEFTFOLD_DURABILITY": "os"}) as conversations:
        [conversation_id] = conversations.ids()
        at_hand = conversations.open(conversation_id)
        ask(at_hand, "delta")
        texts = [message.content.text for message in at_hand.conversation.messages()]

    assert texts[-2:] == ["delta", "You said delta."]
    assert log.read_bytes().startswith(before)
    after = report()
    assert len(after.findings) == findings
    assert after.events >= 10 - (damage in ("torn tail", "lost line"))


def test_over_another_persistence_module_events_and_requests_are_checked_all_the_same():
    with Conversations({"PERSISTENCE_MODULE": "eventsourcing.popo"}) as conversations:
        at_hand = conversations.start(begin)
        ask(at_hand, "alpha")
        report = verify(conversations, at_hand.id)

    assert report.ok
    assert report.bytes is None
    assert (report.events, report.requests_proven) == (5, 1)


# -- requests that another version of the projection made ------------------------------------------


def relabelled(log, version, **changes):
    """Change fields of one event's state, without a checksum, as another program would have it."""
    lines = lines_of(log)
    edited = json.loads(lines[version])
    del edited["crc"]
    edited["state"] |= changes
    lines[version] = json.dumps(edited).encode() + b"\n"
    log.write_bytes(b"".join(lines))


def test_a_request_that_an_older_projection_made_is_told_apart_from_damage(log, report):
    relabelled(log, 5, projection="p0", request_digest="c1:00")
    seen = report()

    [finding] = seen.findings
    assert (finding.kind, finding.version, finding.line) == ("projection", 5, 6)
    assert "projected by 'p0' and would now differ" in finding.what
    assert seen.ok
    assert seen.requests_proven == 2


def test_a_request_of_this_projection_that_differs_is_damage(log, report):
    relabelled(log, 5, projection=PROJECTION, request_digest="c1:00")
    seen = report()

    assert [(finding.kind, finding.version) for finding in seen.findings] == [("request", 5)]
    assert not seen.ok


def test_a_request_of_an_older_projection_that_does_not_differ_is_proven(log, report):
    digest_now = json.loads(lines_of(log)[5])["state"]["request_digest"]
    relabelled(log, 5, projection="p0", request_digest=digest_now)

    assert report().requests_proven == 3


def test_kinds_say_what_is_wrong(log, report):
    lines = lines_of(log)
    old = lines[2]
    log.write_bytes(b"".join([b"?\n", *lines[1:6], old, b"\0\n", *lines[7:]]))

    kinds = {finding.kind for finding in report().findings}
    assert kinds == {"header", "version", "damage", "parent", "request"}


def test_proving_projects_no_request_of_a_long_conversation_twice(
    conversations, monkeypatch, contexts
):
    """Linear: each entry is looked at once, not once for every later request."""
    from domain.projections import message_builder

    at_hand = conversations.start(begin)
    for number in range(40):
        ask(at_hand, f"prompt {number}")
    contexts.undo()
    looked = []
    add = message_builder.MessageBuilder.add
    monkeypatch.setattr(
        message_builder.MessageBuilder,
        "add",
        lambda self, entry: (looked.append(entry), add(self, entry))[1],
    )
    report = verify(conversations, at_hand.id)

    assert report.requests_proven == 40
    assert len(looked) == 79


# -- the order over all conversations --------------------------------------------------------------


@pytest.fixture
def order(conversations, log):
    """The path of the notification log, which knows the nine events of *log*."""
    assert conversations.recorder.max_notification_id() == 9
    conversations.store.close()
    path = conversations.store.notifications.file.path
    assert order_of(conversations) == (9, ())
    return path


def order_of(conversations):
    order = check_order(conversations.store)
    assert order.ok == (not order.findings)
    return order.records, order.findings


def whats(conversations):
    return [finding.what for finding in check_order(conversations.store).findings]


def record(conversation_id, offset, version):
    body = RECORD.pack(conversation_id.bytes, offset, version, 0)[:-4]
    return body + zlib.crc32(body).to_bytes(4, "big")


def test_an_order_that_is_missing_or_behind_is_no_fault(conversations, order):
    order.write_bytes(order.read_bytes()[: -2 * RECORD.size])
    assert order_of(conversations) == (7, ())
    order.unlink()
    assert order_of(conversations) == (0, ())
    assert not order.exists()


def test_records_that_point_nowhere_are_reported(conversations, log, order):
    [conversation_id] = conversations.ids()
    with order.open("ab") as file:
        file.write(record(conversation_id, 10**6, 10))
    before = order.read_bytes()

    assert whats(conversations) == [f"{conversation_id}: 1 records point at no event"]
    assert order.read_bytes() == before


def test_events_lost_at_the_end_of_a_log_are_witnessed_by_the_order(conversations, log, order):
    """Whole lines that are gone leave no trace in the log itself."""
    log.write_bytes(b"".join(lines_of(log)[:-2]))
    [conversation_id] = conversations.ids()

    assert verify(conversations, conversation_id).ok
    assert whats(conversations) == [f"{conversation_id}: 2 records point at no event"]


def test_a_log_that_is_gone_is_witnessed_by_the_order(conversations, log, order):
    log.unlink()

    [what] = whats(conversations)
    assert what.startswith("9 events of a log that is gone")


def test_a_log_that_was_deleted_on_purpose_is_no_fault_of_the_order(conversations, log, order):
    [conversation_id] = conversations.ids()
    trash.put(conversations.store, conversation_id)

    assert order_of(conversations) == (9, ())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda data: data + data[-RECORD.size :], ["1 events stand in it twice"]),
        (
            lambda data: data[: 2 * RECORD.size] + data[3 * RECORD.size :],
            ["1 events were passed over"],
        ),
        (
            lambda data: data[:64] + data[96:128] + data[64:96] + data[128:],
            ["its events are not in their order"],
        ),
    ],
    ids=["twice", "passed over", "out of order"],
)
def test_an_order_that_is_none_is_reported(conversations, order, change, named):
    order.write_bytes(change(order.read_bytes()))
    [conversation_id] = conversations.ids()

    assert whats(conversations) == [f"{conversation_id}: {what}" for what in named]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda _: b"", "not an order of events"),
        (lambda data: b"x" * 16 + data[16:], "not an order of events"),
        (lambda data: data[:70] + b"?" + data[71:], "record 2 disagrees with its checksum"),
        (lambda data: data + b"half", "torn"),
    ],
    ids=["empty", "another file", "a byte", "torn"],
)
def test_a_damaged_order_is_reported_and_left_alone(conversations, order, change, named):
    order.write_bytes(change(order.read_bytes()))
    before = order.read_bytes()

    assert named in whats(conversations)[0]
    assert order.read_bytes() == before


def test_the_command_says_what_is_wrong_with_the_order_and_exits_with_1(conversations, order):
    def run(*arguments):
        return CliRunner().invoke(leftfold, ["--store", str(order.parents[1]), *arguments])

    assert run("verify").exit_code == 0
    order.write_bytes(order.read_bytes() + b"half")
    done = run("verify")

    assert done.exit_code == 1
    assert done.stdout.splitlines()[1].startswith("the order of all events, 9 records: 1 findings")
    assert "order" in done.stdout.splitlines()[2]
    objects = [json.loads(line) for line in run("verify", "--json").stdout.splitlines()]
    assert [each["ok"] for each in objects] == [True, False]
    assert objects[1]["records"] == 9
    [conversation_id] = conversations.ids()
    assert run("verify", str(conversation_id)).exit_code == 0
