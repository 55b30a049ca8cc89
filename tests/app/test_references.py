"""What people type to name a conversation or an entry (cases H5, H8)."""

from uuid import UUID

import pytest

from app import references
from app.application import Conversations
from app.errors import AmbiguousIdError, NoSuchConversationError, UsageError
from domain.conversation import Conversation
from domain.errors import UnknownEntryError
from tests.builders import conversation, labelled, moved, user

FIRST = UUID("01920000-0000-7000-8000-00000000aaaa")
SECOND = UUID("01920000-1111-7000-8000-00000000bbbb")
THIRD = UUID("01930000-1111-7000-8000-00000001bbbb")


@pytest.fixture
def three(home):
    """A store of three conversations, FIRST, SECOND and THIRD."""
    with Conversations({"LEFTFOLD_DURABILITY": "os"}) as conversations:
        for each in (FIRST, SECOND, THIRD):
            talk = Conversation.start(each, timestamp=conversations.clock(), cwd="/work")
            conversations.save(talk)
        yield conversations


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (str(FIRST), FIRST),
        (str(FIRST).upper(), FIRST),
        ("01920000-0", FIRST),
        ("aaaa", FIRST),
        ("01920000-1", SECOND),
        ("0193", THIRD),
        ("1bbbb", THIRD),
    ],
)
def test_a_whole_id_or_a_unique_beginning_or_end_names_a_conversation(three, wanted, found):
    assert references.conversation_id(three, wanted) == found


def test_a_name_that_one_conversation_has_names_it_and_ids_win(three):
    for each, name in ((FIRST, "Anna 安娜"), (SECOND, "twins"), (THIRD, "aaaa")):
        three.open(each).record(lambda talk, name=name: talk.rename(name))

    assert references.conversation_id(three, "Anna 安娜") == FIRST
    assert references.conversation_id(three, "aaaa") == FIRST  # an id, and a name
    three.open(THIRD).record(lambda talk: talk.rename("dead"))  # no id, though it looks like one
    assert references.conversation_id(three, "dead") == THIRD
    three.open(THIRD).record(lambda talk: talk.rename("twins"))
    with pytest.raises(AmbiguousIdError, match="matches 2 conversations"):
        references.conversation_id(three, "twins")
    for nobody in ("anna", ""):
        with pytest.raises(UsageError, match="nor a name"):
            references.conversation_id(three, nobody)


def test_a_name_is_found_beside_a_log_that_cannot_be_read(three):
    three.open(THIRD).record(lambda talk: talk.rename("Anna"))
    broken = three.store.path / f"{FIRST}.jsonl"
    broken.write_bytes(broken.read_bytes().replace(b"leftfold/1", b"leftfold/9"))
    (three.store.path / f"{SECOND}.jsonl").write_bytes(b"")

    assert references.conversation_id(three, "Anna") == THIRD


@pytest.mark.parametrize(("wanted", "count"), [("0192", 2), ("bbbb", 2), ("019", None)])
def test_what_matches_several_is_refused_with_some_of_them(three, wanted, count):
    if count is None:
        with pytest.raises(UsageError, match="too short"):
            references.conversation_id(three, wanted)
        return
    with pytest.raises(AmbiguousIdError, match=f"matches {count} conversations: 01"):
        references.conversation_id(three, wanted)


@pytest.mark.parametrize("wanted", ["beef", "0192-0000", "-8000-"])
def test_what_matches_nothing_says_where_to_look(three, wanted):
    """A middle part is no match: neither beginning nor end."""
    with pytest.raises(NoSuchConversationError, match="leftfold list --all"):
        references.conversation_id(three, wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        "",
        "a",
        "01",
        "../x",
        "/etc/x",
        "a/b",
        "aaaa\0",
        "aaaa ",
        "aaaa\n",
        "~",
        "*",
        "a.jsonl",
        "١٢٣٤",
    ],
)
def test_what_cannot_be_an_id_is_wrong_usage(three, wanted):
    with pytest.raises(UsageError):
        references.conversation_id(three, wanted)


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("0192", ("0192", None)),
        ("0192@5", ("0192", "5")),
        ("0192@-1", ("0192", "-1")),
        ("0192@start", ("0192", "start")),
        ("0192@a@b", ("0192", "a@b")),
    ],
)
def test_a_reference_is_an_id_and_perhaps_an_entry(reference, parts):
    assert references.split(reference) == parts


def test_an_at_with_nothing_behind_it_is_wrong_usage():
    with pytest.raises(UsageError, match="missing"):
        references.split("0192@")


def talk():
    """Entries 1-4, of which 4 hangs from 2; entry 1 is labelled "begin", 3 is off the path."""
    return conversation(
        user("one"),
        user("two"),
        user("three"),
        moved(2),
        user("four"),
        labelled(1, "begin"),
    )


@pytest.mark.parametrize(
    ("wanted", "version"),
    [("1", 1), ("3", 3), ("5", 5), ("-1", 5), ("-2", 2), ("-3", 1), ("begin", 1)],
)
def test_an_entry_is_a_version_a_label_or_counted_from_the_end_of_the_path(wanted, version):
    assert references.entry_version(talk(), wanted) == version


@pytest.mark.parametrize("order", [(1, 3), (3, 1)])
def test_of_equal_labels_the_one_that_was_given_last_counts(order):
    talk = conversation(
        user("one"), user("two"), user("three"), *(labelled(entry, "good") for entry in order)
    )

    assert references.entry_version(talk, "good") == order[-1]


@pytest.mark.parametrize(
    "wanted",
    ["0", "4", "6", "99", "-4", "9" * 23, "-" + "9" * 23, "9" * 5000, "-" + "9" * 5000],
    ids=lambda number: number[:9],
)
def test_what_is_no_entry_is_refused(wanted):
    with pytest.raises(UnknownEntryError):
        references.entry_version(talk(), wanted)


@pytest.mark.parametrize("wanted", ["begi", "end", "1.0", "+1", "../x", "١"])
def test_a_label_that_nothing_has_is_wrong_usage(wanted):
    with pytest.raises(UsageError, match="label"):
        references.entry_version(talk(), wanted)
