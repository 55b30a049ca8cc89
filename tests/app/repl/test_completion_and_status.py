"""What Tab offers, and what the status line says."""

import threading
from decimal import Decimal
from types import SimpleNamespace

import pytest
from prompt_toolkit.application.current import set_app
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.output import DummyOutput

from app.application import Conversations
from app.repl import slash
from app.repl.command import is_completable
from app.repl.completion import PromptCompleter
from app.repl.spent import Facts, Spent
from app.repl.status import StatusLine, parts, shortened
from app.settings import run_settings, settings
from domain.projections.compaction import context_tokens
from domain.thinking import THINKING_LEVELS
from tests import builders as b
from tests.app.doubles import begin


@pytest.fixture
def here(tmp_path):
    folder = tmp_path / "work"
    (folder / "sub dir").mkdir(parents=True)
    (folder / "src").mkdir()
    for name in ("one.txt", "two words.txt", ".hidden", "src/main.py"):
        (folder / name).write_text("")
    return folder


@pytest.fixture
def offered(here, tmp_path):
    environment = {"LEFTFOLD_STORE": str(tmp_path / "store"), "LEFTFOLD_DURABILITY": "os"}
    with Conversations(environment) as conversations:
        open_conversation = conversations.start(begin(str(here)))
        open_conversation.record(
            lambda conversation: conversation.append_prompt("what is \x1b this")
        )
        open_conversation.record(
            lambda conversation: conversation.label(conversation.leaf, "start")
        )
        factory = SimpleNamespace(
            conversations=conversations, settings=SimpleNamespace(cwd=str(here))
        )
        desk = SimpleNamespace(
            recorded=lambda: open_conversation.conversation, directory=here, factory=factory
        )
        completer = PromptCompleter(desk, slash.TABLE)

        def complete(text):
            found = completer.get_completions(Document(text), CompleteEvent())
            return [text[: len(text) + each.start_position] + each.text for each in found]

        yield complete


def test_the_conversations_of_this_directory_are_offered(offered, tmp_path):
    [log] = (tmp_path / "store").glob("*.jsonl")

    assert offered("/resume ") == offered(f"/resume {log.stem[:8]}") == [f"/resume {log.stem}"]
    assert offered("/resume zz") == []


def test_commands_are_offered_by_their_beginning(offered):
    assert offered("/t") == ["/tree ", "/thinking "]
    assert len(offered("/")) == len(slash.TABLE)
    assert offered("/xyz") == offered("hello /t") == []


def test_what_commands_take_is_offered(offered):
    assert offered("/thinking ") == [f"/thinking {level}" for level in THINKING_LEVELS]
    assert offered("/thinking m") == ["/thinking medium", "/thinking max"]
    assert offered("/tree s") == ["/tree start"]
    assert offered("/label @") == ["/label @start", "/label @4"]
    assert offered("/label x") == []


def test_files_are_offered_after_an_at_and_hidden_ones_only_if_asked_for(offered):
    assert offered("see @") == [
        "see @one.txt",
        "see @src/",
        'see @"sub dir/',
        'see @"two words.txt"',
    ]
    assert offered("see @src/") == ["see @src/main.py"]
    assert offered("see @.h") == ["see @.hidden"]
    assert offered('see @"two') == ['see @"two words.txt"']
    assert offered("mail me@o") == offered("@nowhere/") == []


def test_the_menu_opens_by_itself_only_where_it_helps():
    assert is_completable("/th")
    assert is_completable("/tree ")
    assert is_completable("look at @")
    assert not is_completable("/usr/bin")
    assert not is_completable("hello")
    assert not is_completable("")


def conversation_with(**facts):
    leaf_and_labels = {"leaf": 3, "labels": {}, "thinking_level": "off", "name": None}
    return SimpleNamespace(**{"model": "some-model", **leaf_and_labels, **facts})


def test_the_status_says_what_is_known():
    facts = Facts(12_345, 200_000, Decimal("0.01234"))
    conversation = conversation_with(thinking_level="high", labels={3: "here"}, name="A \x1b name")

    assert parts(conversation_with(), None) == ["some-model"]
    assert parts(conversation, facts) == [
        "some-model", "12.3k/200k tokens (6%)", "thinking high", "$0.0123", "[here]", "A ␛ name",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (0, "0"), (999, "999"), (1_000, "1k"), (12_345, "12.3k"), (200_000, "200k"),
        (999_999, "1000k"), (1_000_000, "1M"), (1_048_576, "1M"), (1_500_000, "1.5M"),
    ],
)  # fmt: skip
def test_tokens_are_counted_in_few_digits(tokens, expected):
    [_, said] = parts(conversation_with(), Facts(0, tokens, None))

    assert said.split("/")[1].split(" ")[0] == expected


def test_what_was_spent_is_summed_up_piece_by_piece():
    conversation, usage = b.new_conversation(), {"input_tokens": 1, "output_tokens": 2}
    looked_at = []

    def cost(model, spent):
        looked_at.append(spent)
        return Decimal(sum(spent.values())) if model == b.MODEL else None

    spent = Spent()
    for round_ in range(3):
        conversation.append_prompt("?")
        conversation.append_answer([b.text("!")], stop_reason="end_turn", usage=usage)
        spent = spent.and_since(conversation, cost)
        assert (spent.dollars, len(looked_at)) == (3 * (round_ + 1), round_ + 1)

    conversation.append_answer([b.text("!")], stop_reason="end_turn", usage=usage, model="unpriced")
    spent = spent.and_since(conversation, cost)
    assert spent.dollars is spent.and_since(conversation, cost).dollars is None


def test_a_fork_counts_what_it_spent_itself():
    usage = {"input_tokens": 1}
    before = [b.user("?"), b.assistant("!", usage=usage)]
    conversation = b.conversation(*before, b.forked(2), b.user("?"), b.assistant("!", usage=usage))

    assert (
        Spent().and_since(conversation, lambda _model, spent: Decimal(sum(spent.values()))).dollars
        == 1
    )


def test_the_status_counts_instructions_and_knows_the_window_that_a_server_named():
    conversation = b.conversation(b.model(), b.learned(context_window=8_000), b.user("hello"))
    told = b.conversation(b.model(), b.instructions("Be brief. " * 999), b.user("hello"))
    factory = SimpleNamespace(window_of=lambda _model: 200_000, foreseen=lambda _conversation: told)
    is_known = threading.Event()
    screen = SimpleNamespace(invalidate=is_known.set, output=DummyOutput())
    status = StatusLine(settings())
    status.look_at(SimpleNamespace(conversation=conversation, factory=factory))

    with set_app(screen):
        status()
        assert is_known.wait(60)
        line = status()[0][1]
    assert context_tokens(conversation) < 100
    assert f"· {context_tokens(told) / 1000:.1f}k/8k tokens" in line


def test_before_there_is_a_conversation_the_status_says_what_a_new_one_begins_with(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    chosen = run_settings(name="a name", model="some-model", thinking="high")

    with set_app(SimpleNamespace(output=DummyOutput())):
        [(_, line)] = StatusLine(chosen)()

    assert line == "some-model · thinking high · a name"


def test_a_narrow_window_gets_the_most_important():
    said = ["some-model", "1k/200k tokens (0%)", "名字"]

    assert shortened(said, 80) == "some-model · 1k/200k tokens (0%) · 名字"
    assert shortened(said, 32) == "some-model · 1k/200k tokens (0%)"
    assert shortened(said, 38) == "some-model · 1k/200k tokens (0%)"
    assert shortened(said, 12) == "some-model"
    assert shortened(said, 3) == ""
