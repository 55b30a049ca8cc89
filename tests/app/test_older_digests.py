"""What an older version sent is proven as it was then: its digests are over canonical JSON."""

import json
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner

from app.application import Conversations
from app.cli import leftfold
from app.verification import verify
from domain.projections.context import request_of
from domain.projections.proofs import with_proofs_that_hold

LOG = Path(__file__).parents[1] / "golden" / "answers_c1.jsonl"
"""Ten requests of the version before: thinking, parallel calls, an image, a citation, odd ids,
control characters, a compaction, a branch, another model."""


@pytest.fixture
def conversations(home):
    with Conversations({"LEFTFOLD_DURABILITY": "os"}) as application:
        yield application


@pytest.fixture
def log(conversations):
    header = json.loads(LOG.read_bytes().partition(b"\n")[0])
    path = conversations.store.path_of(UUID(header["id"]))
    path.parent.mkdir(parents=True)
    path.write_bytes(LOG.read_bytes())
    return path


def test_every_request_of_an_older_version_is_proven(conversations, log):
    found = verify(conversations, UUID(log.stem))

    assert (found.ok, found.requests_proven, found.findings) == (True, 10, ())
    events = list(conversations.events_of(UUID(log.stem)))
    assert with_proofs_that_hold(events) == (events, 0)


def test_a_word_that_was_changed_in_it_is_found(conversations, log):
    log.write_bytes(log.read_bytes().replace(b"So it says", b"So he says"))

    findings = verify(conversations, UUID(log.stem)).findings

    assert {finding.kind for finding in findings} == {"checksum", "request"}
    assert sum(finding.kind == "request" for finding in findings) > 1


def test_both_forms_are_proven_in_one_log(conversations, log):
    opened = conversations.open(UUID(log.stem))
    for prompt in ("and now", "once more"):
        opened.record(lambda talk, prompt=prompt: talk.append_prompt(prompt))
        talk = opened.conversation
        request, version = request_of(talk, talk.leaf), talk.version
        opened.record(
            lambda talk, request=request, version=version: talk.append_answer(
                [{"type": "text", "text": "Yes."}],
                stop_reason="end_turn",
                request_digest=request.digest(),
                request_version=version,
            )
        )

    assert verify(conversations, UUID(log.stem)).requests_proven == 12


def test_what_is_printed_of_it_is_what_its_digest_is_over(conversations, log):
    events = (json.loads(line) for line in LOG.read_bytes().splitlines()[1:])
    digests = {event["v"]: event["state"].get("request_digest") for event in events}
    asked = [version for version, digest in digests.items() if digest]
    conversations.close()

    assert len(asked) == 9
    for version in asked:
        done = CliRunner().invoke(leftfold, ["context", f"{log.stem}@{version}", "--json"])
        body = done.stdout.encode().removesuffix(b"\n")
        assert (done.exit_code, f"c1:{sha256(body).hexdigest()}") == (0, digests[version])
