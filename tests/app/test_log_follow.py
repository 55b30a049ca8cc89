"""`log --follow` shows each event once, whenever it is recorded."""

import itertools

import pytest

from app.application import Conversations
from app.commands.log import _following
from tests.app.test_outputs import begin


@pytest.mark.parametrize("moment", ["before the first", "between", "after the last"])
def test_what_is_recorded_while_the_log_is_being_read_is_followed(tmp_path, monkeypatch, moment):
    """The gap between reading what is there and being told of what comes loses nothing."""
    store = tmp_path / "store"
    conversation_id = begin(store, "hello")
    with (
        Conversations({"LEFTFOLD_STORE": str(store)}) as ours,
        Conversations({"LEFTFOLD_STORE": str(store)}) as others,
    ):
        at_hand = others.open(conversation_id)
        known = at_hand.conversation.version
        read = ours.events_of

        def append():
            at_hand.record(lambda talk: talk.rename("meanwhile"))

        def reading(*arguments, **more):
            events = list(read(*arguments, **more))
            if moment == "before the first":
                append()
            yield events[0]
            if moment == "between":
                append()
            yield from events[1:]
            if moment == "after the last":
                append()

        monkeypatch.setattr(ours, "events_of", reading)
        following = _following(ours, conversation_id, 1)
        found = list(itertools.islice(following, known))
        assert [event.originator_version for event in found] == list(range(1, known + 1))
        assert next(following).name == "meanwhile"
        at_hand.record(lambda talk: talk.rename("and later"))
        last = next(following)
        assert (last.originator_version, last.name) == (known + 2, "and later")
        following.close()
