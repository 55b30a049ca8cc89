"""The order of all events, followed: each once, whatever becomes of the order meanwhile."""

import shutil
from itertools import islice

import pytest

from app.application import Conversations
from infrastructure.following import Following, place_before
from infrastructure.jsonl.subscription import OneOrder
from tests.app.test_outputs import begin

SQLITE = "eventsourcing.sqlite"


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def conversations(store):
    with Conversations({"LEFTFOLD_STORE": str(store)}) as found:
        yield found


def names(notices):
    return [(str(notice.originator_id), notice.originator_version) for notice in notices]


def all_there(conversations):
    return names(conversations.recorder.select_notifications(1, 1000))


def ended(conversations, place):
    return list(Following(conversations.recorder, place, to_the_end=True))


def rebuild(conversations, store):
    shutil.rmtree(store / ".index")


def copy_in(conversations, store):
    """A log from elsewhere, whose name comes first: all ids move when the order is built again."""
    theirs = begin(store.with_name("elsewhere"), "from elsewhere")
    shutil.copy(store.with_name("elsewhere") / f"{theirs}.jsonl", store)


def copy_in_and_rebuild(conversations, store):
    copy_in(conversations, store)
    rebuild(conversations, store)


def damage(conversations, store):
    """The second line of each log is none any more: its records fit no line."""
    for log in store.glob("*.jsonl"):
        lines = log.read_bytes().splitlines(keepends=True)
        lines[2] = b"#" * (len(lines[2]) - 1) + b"\n"
        log.write_bytes(b"".join(lines))


def cut(conversations, store):
    """The order loses its second half, as in a crash of the machine."""
    path = store / ".index" / "notifications"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 64 * 32])


BLOWS = [rebuild, copy_in, copy_in_and_rebuild, damage, cut]


@pytest.mark.parametrize("blow", BLOWS)
@pytest.mark.parametrize("to_the_end", [True, False])
def test_each_event_is_seen_once_although_the_order_is_built_again(
    store, conversations, blow, to_the_end
):
    first = begin(store, "one")
    begin(store, "two")
    before = all_there(conversations)
    following = Following(
        conversations.recorder, place_before(conversations.recorder, 1), to_the_end=to_the_end
    )
    coming = iter(following)
    seen = names(islice(coming, len(before) if to_the_end else len(before) // 2))

    blow(conversations, store)
    conversations.open(first).record(lambda talk: talk.rename("meanwhile"))
    awaited = set(all_there(conversations)) | set(before)
    while len(seen) < len(awaited) and (notice := next(coming, None)):
        seen += names([notice])
    following.stop()

    lost = set(before) - set(all_there(conversations))  # only what is damaged may be missing
    assert set(seen) | lost == awaited | lost
    assert len(set(seen)) == len(seen)
    for id_ in {id_ for id_, _ in seen}:
        versions = [version for each, version in seen if each == id_]
        assert versions == sorted(versions)
    assert list(coming) == []


@pytest.mark.parametrize("blow", BLOWS)
def test_a_place_in_an_order_that_is_no_more_loses_and_repeats_nothing(store, conversations, blow):
    first = begin(store, "one")
    begin(store, "two")
    before = all_there(conversations)
    place = place_before(conversations.recorder, len(before) - 1)
    assert names(ended(conversations, place)) == before[-2:]

    blow(conversations, store)
    conversations.open(first).record(lambda talk: talk.rename("meanwhile"))

    assert set(names(ended(conversations, place))) == set(all_there(conversations)) - set(before)


def test_a_place_in_the_past_knows_what_came_before(store, conversations):
    begin(store, "one")
    begin(store, "two")
    before = all_there(conversations)

    for position in range(1, len(before) + 2):
        assert (
            names(ended(conversations, place_before(conversations.recorder, position)))
            == before[position - 1 :]
        )


def test_an_empty_store_is_followed_from_its_first_event_on(store, conversations):
    following = Following(conversations.recorder, place_before(conversations.recorder, 1))
    coming = iter(following)
    begin(store, "one")

    assert next(coming).topic == "Started"
    following.stop()


@pytest.mark.parametrize("module", [SQLITE, "eventsourcing.popo"])
def test_other_modules_are_followed_too(tmp_path, module):
    """By their subscriptions, or by looking again where there are none."""
    environment = {"PERSISTENCE_MODULE": module, "SQLITE_DBNAME": str(tmp_path / "x.db")}
    with Conversations(environment) as conversations:
        following = Following(conversations.recorder, place_before(conversations.recorder, 1))
        coming = iter(following)
        new = conversations.start(_begun)
        new.record(lambda talk: talk.rename("one"))
        seen = names(islice(coming, 2))
        new.record(lambda talk: talk.rename("two"))
        seen += names(islice(coming, 1))
        following.stop()
        assert list(coming) == []

    assert [version for _, version in seen] == [1, 2, 3]


def _begun(id_, when):
    from domain.conversation import Conversation

    return Conversation.start(id_, timestamp=when, cwd="/", program="test", version="1")


def test_what_another_saves_while_notifications_are_read_is_news_afterwards(
    conversations, store, monkeypatch
):
    """Else who follows waits for the event after it: forever, if it was the last."""
    begin(store, "first")
    order = OneOrder(conversations.recorder)
    read = conversations.recorder.select_notifications

    def read_and_another_saves(*arguments, **options):
        found = read(*arguments, **options)
        begin(store, "meanwhile")
        return found

    monkeypatch.setattr(conversations.recorder, "select_notifications", read_and_another_saves)
    assert order.select_notifications(1, 100)

    assert conversations.store.has_news()
