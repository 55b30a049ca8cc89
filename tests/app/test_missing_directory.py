"""A conversation whose directory is gone, or is somebody else's: nobody is taken anywhere unasked."""

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from app.errors import DirectoryGoneError, ForeignDirectoryError
from app.missing_directory import check, question
from app.repl.place_commands import choose
from app.terminal import ask
from domain.conversation import Conversation


def begun(conversations, cwd, seals):
    def begin(conversation_id, timestamp):
        return Conversation.start(conversation_id, timestamp=timestamp, cwd=cwd, seals=seals)

    opened = conversations.start(begin)
    opened.record(lambda talk: talk.append_prompt("hello"))
    return opened.id


class OfAnother:
    """Seals of another home."""

    def seal(self, vouched_for):
        return "0" * 64

    def agrees(self, vouched_for, seal):
        return True


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("is_own", [True, False])
def test_a_directory_is_gone_into_if_it_is_there_and_was_chosen_here(
    conversations, tmp_path, is_own, is_there
):
    cwd = tmp_path / "work"
    if is_there:
        cwd.mkdir()
    begun_in = begun(conversations, str(cwd), conversations.seals if is_own else OfAnother())

    def lost(*, here=False, now_in=tmp_path, is_asked=True):
        chosen = SimpleNamespace(here=here, cwd=str(now_in))
        return check(conversations, begun_in, chosen, is_asked=is_asked)

    assert lost(here=True, is_asked=False) is None
    assert lost(now_in=cwd, is_asked=False) is None
    if is_own and is_there:
        assert lost() is None
        assert lost(is_asked=False) is None
    else:
        assert lost() == str(cwd)
        with pytest.raises(ForeignDirectoryError if is_there else DirectoryGoneError):
            lost(is_asked=False)


def at_the_start(gone, typed):
    with CliRunner().isolation(f"{typed}\n") as (_out, err, _):
        return ask(question(gone, "/here")), err.getvalue().decode()


def in_the_repl(gone, typed):
    said = []
    desk = SimpleNamespace(say=said.append, type_ahead=SimpleNamespace(paused=nullcontext))
    with create_pipe_input() as source, create_app_session(source, DummyOutput()):
        source.send_text(f"{typed}\r")
        return asyncio.run(choose(desk, question(gone, "/here"))), said[0]


@pytest.mark.parametrize("asking", [at_the_start, in_the_repl])
@pytest.mark.parametrize(
    ("typed", "choice"), [("here", "here"), ("fork", "fork"), ("cancel", "cancel"), ("", "cancel")]
)
def test_only_a_word_goes_on_and_the_directory_is_shown_as_it_is(asking, typed, choice):
    picked, shown = asking("/gone\x1b[2J", typed)

    assert picked == choice
    assert "is gone: /gone␛[2J" in shown
