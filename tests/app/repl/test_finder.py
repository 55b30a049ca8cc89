"""What the picker finds while somebody types: the newest wish, in all that was said."""

import queue
import shutil
import threading
from uuid import UUID

import pytest

from app.repl import finder as module
from app.repl.finder import Finder
from tests.app.test_read_models import opened, say


@pytest.fixture
def store(tmp_path):
    return tmp_path / "conversations"


class Finding:
    """A finder of a store, and what it says."""

    def __init__(self, store, within=None):
        self.found, self.told = queue.Queue(), []
        self.conversations = opened(store)
        ids = frozenset(self.conversations.ids()) if within is None else frozenset(within)
        self.finder = Finder(
            self.conversations,
            within=ids,
            tell=self.told.append,
            found=lambda words, hits: self.found.put((words, [hit.text for hit in hits])),
        )

    def __enter__(self):
        self.finder.__enter__()
        return self

    def __exit__(self, *error):
        self.finder.__exit__(*error)
        self.conversations.close()

    def __call__(self, words):
        self.finder.look_for(words)
        while True:
            found_for, texts = self.found.get(timeout=60)
            if found_for == words:
                return texts


def test_it_finds_the_newest_text_of_each_conversation(store):
    say(store, "the snake_case of 数据库, Café")
    log = say(store, "another snake_case")
    with opened(store) as conversations:
        conversations.open(UUID(log.stem)).record(
            lambda talk: talk.append_prompt("snake_case again")
        )

    with Finding(store) as find:
        assert find("snake") == ["snake_case again", "the snake_case of 数据库, Café"]
        assert find("cafe 数据") == ["the snake_case of 数据库, Café"]
        assert find("\u0301") == []
        assert find('NOT "snake') == []
        assert find("") == []
    assert find.told[-1] == ""


def test_it_finds_in_the_conversations_that_are_listed_only(store):
    say(store, "pytest one")
    log = say(store, "pytest two")

    with Finding(store, [UUID(log.stem)]) as find:
        assert find("pytest") == ["pytest two"]


def test_a_newer_wish_ends_the_work_for_an_older_one(store, monkeypatch):
    """The statement that runs is interrupted: here it would run for ever."""
    say(store, "pytest")
    began = threading.Event()
    real = module.hits

    def endless(connection, wanted, accept):
        if wanted.parts == ("forever",):
            began.set()
            numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
            connection.execute(f"{numbers} SELECT count(*) FROM n").fetchone()
        return real(connection, wanted, accept)

    monkeypatch.setattr(module, "hits", endless)
    with Finding(store) as find:
        find.finder.look_for("forever")
        assert began.wait(60)
        assert find("pytest") == ["pytest"]
        find.finder.look_for("forever")
    assert find.found.empty()  # and leaving ends it, too


def test_where_there_is_no_index_it_says_that_only_titles_are_searched(store):
    say(store, "pytest")
    shutil.rmtree(store / ".index", ignore_errors=True)
    (store / ".index").write_text("")
    with Finding(store) as find:
        while find.finder._thread.is_alive():
            find.finder._thread.join(60)
    assert "only titles are searched" in find.told[-1]
