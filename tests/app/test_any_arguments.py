"""Any arguments to any command: an answer or a line or two, never a traceback, nothing written by reading."""

import shutil

import click
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.cli import COMMANDS, leftfold
from tests.app.in_process import run
from tests.app.test_outputs import begin, check, empty, hurt
from tests.levels import examples

READING = ("list", "show", "log", "tree", "context", "verify", "stats", "config")
ENDLESS = {"--follow", "--compact", "--help", "-h"}
"""Options that wait for others, start a model, or are not ours."""

hard = st.text(max_size=12) | st.sampled_from(
    ["", "-1", "--", "-", "@", "0192", "0000", "\0", "../../x", "\udc9b", "1e9", "9" * 40, "é中"]
)


@st.composite
def references(draw, known):
    """What may name an entry: a known id or a part of one, or anything, with or without an entry."""
    some_id = draw(st.sampled_from(known) | hard)
    cut = draw(st.integers(-12, 40))
    some_id = some_id[cut:] if cut < 0 else some_id[: cut + 4]
    entry = draw(st.none() | st.integers(-(10**20), 10**20).map(str) | hard)
    return some_id if entry is None else f"{some_id}@{entry}"


@st.composite
def command_lines(draw, known):
    name = draw(st.sampled_from(list(COMMANDS)))
    options = [
        each for each in leftfold.get_command(None, name).params if isinstance(each, click.Option)
    ]
    words = [name]
    some = st.lists(st.sampled_from(options), max_size=3) if options else st.just([])
    for option in draw(some):
        if option.opts[0] not in ENDLESS:
            words.append(option.opts[0])
            if not option.is_flag:
                words.append(draw(hard | st.integers(-5, 10**20).map(str)))
    positional = draw(st.lists(references(known) | hard, max_size=3))
    where = draw(st.integers(0, len(words) - 1))
    return [*words[: where + 1], *positional, *words[where + 1 :]]


OF_MANY = ("verify", "copy", "sync", "import")
"""What they print of some conversations is no half of an answer, though others could not be had."""


def state(folder):
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_any_arguments_are_answered(tmp_path_factory, home, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("work"))
    template = tmp_path_factory.mktemp("template") / "conversations"
    known = [str(begin(template, f"hello {number}", name="n")) for number in range(3)]
    hurt(template, known[1])
    empty(template, known[2])

    @settings(max_examples=examples(150))
    @given(words=command_lines(known))
    @example(words=["show", "\0"])
    @example(words=["list", "\n"])
    @example(words=["log", known[0], "--since", "99999999999999999999"])
    @example(words=["label", f"{known[0]}@\udcff", "\udcff"])
    @example(words=["rename", known[0], "\ud800"])
    @example(words=["sync", "a\0b"])
    @example(words=["copy", "--all", "--to", "a\0b"])
    @example(words=["copy", "--all", "--to-module", "no.such"])
    @example(words=["verify", known[0], known[0], known[2]])
    @example(words=["query", "SELECT * FROM tool_calls, requests", "--json", "--timeout", "1e99"])
    @example(words=["query", "SELECT '\udcff', \"\0\"", "--csv"])
    def ask(words):
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(template, home / "conversations")
        before = state(home)
        done = run(*words)

        assert done.code in (0, 1, 2), done
        assert "Traceback" not in done.err
        assert "unexpected error" not in done.err
        for line in done.err.splitlines():
            assert set(line) & set(map(chr, range(32))) <= {"\t"}
        if done.code == 2 or (done.code == 1 and words[0] not in OF_MANY):
            assert done.complaint
            assert done.out == b""
        if words[0] in READING:
            after = state(home)
            assert {path: after[path] for path in after if ".sqlite3" not in path} == before
        for path, (_, data) in before.items():
            if words[0] != "delete" and "/.index/" not in path:
                assert state(home)[path][1].startswith(data)
        if "--json" in words and done.code == 0:
            check(words[0], done.out)

    ask()


@settings(max_examples=examples(40))
@given(
    st.lists(
        hard | st.sampled_from(["-c", "-r", "--fork", "--name", "--yes", "--thinking", "--tools"]),
        max_size=4,
    )
)
def test_any_arguments_of_a_turn_that_cannot_begin_are_one_result(words):
    """Without a key and without --offline no turn begins, whatever else is said."""
    if any(word in COMMANDS or "help" in word or word.startswith("-h") for word in words):
        return
    done = run("-p", "hi", "--output", "json", *words)

    assert done.code in (1, 2)
    assert done.complaint
    assert [line["type"] for line in done.objects] == ["result"]
