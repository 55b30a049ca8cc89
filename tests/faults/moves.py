"""Two stores of which each has something that the other has not, brought in step.

There is a conversation for each thing that a sync does: copy, continue either way, fork, merge.
"""

from contextlib import closing

from app.syncing import sync
from tests.app.test_moving import all_sound, begin, changes, everything, opened, rows, say


def prepared(folder, say_it):
    """Make the stores, say their events, and return them open."""
    folder.mkdir()
    here, there = opened(folder / "a"), opened(folder / "b")
    gone_on_here, gone_on_there, parted, named = (begin(here, f"say {n}") for n in range(4))
    rows(here, there)
    begin(here, "only here")
    begin(there, "only there")
    say(here, gone_on_here, "here")
    say(there, gone_on_there, "there")
    for side, text in ((here, "one way"), (there, "another")):
        say(side, parted, text)
        say(side, parted, f"{text}, on")
    say(here, named, "work")
    there.open(named).record(lambda conversation: conversation.rename("name"))
    say_it(sorted(events_of(here) | events_of(there)))
    return here, there


def events_of(conversations):
    found = everything(conversations).values()
    return {f"{topic} {state.decode()}" for events in found for _, topic, state in events}


def synced(stores, _say_it):
    """The program that is killed."""
    list(sync(*stores, dry_run=False))


def check(folder, heard):
    """Nothing is lost; the next sync completes it; the one after that has nothing to do."""
    [events] = heard
    with closing(opened(folder / "a")) as here, closing(opened(folder / "b")) as there:
        assert set(events) <= events_of(here) | events_of(there)
        changes(here, there)
        assert everything(here) == everything(there)
        assert set(events) <= events_of(here)
        assert len(list(here.ids())) == 7, "something is there twice"
        for stream in everything(here).values():
            assert len({event[1:] for event in stream}) == len(stream), "an event is there twice"
        assert changes(here, there) == []
        all_sound(here)
        all_sound(there)
