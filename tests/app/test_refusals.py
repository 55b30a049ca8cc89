"""What a server refuses never ends a conversation: limits and content that it names are taken."""

import asyncio
import base64

import pytest

from app.application import Conversations
from app.verification import verify
from domain.events import Compacted, ContentWithheld, LimitsLearned
from domain.projections.context import context
from tests import builders as b
from tests.app.doubles import Desk
from tests.server import Gate, ScriptedServer, call, refuse, reply, thinking

BROKEN = "Could not process image"
LONG = "word " * 1200


@pytest.fixture
def conversations(home):
    with Conversations({"LEFTFOLD_DURABILITY": "os"}) as application:
        yield application


def facts(conversations, desk, kind):
    return [event for event in conversations.events_of(desk.talk.id) if isinstance(event, kind)]


def blocks(request):
    """All blocks of a request, those in results too."""
    for message in request["messages"]:
        for block in message["content"]:
            yield block
            if isinstance(block.get("content"), list):
                yield from block["content"]


def kinds(request):
    return [block["type"] for block in blocks(request)]


def refuses(kind, words=BROKEN, status=400):
    """A server that answers nothing but refusals as long as such a block is in the request."""

    def answer(request):
        return refuse(status, words) if kind in kinds(request) else reply("Without it.")

    return answer


def is_proven(conversations, desk):
    report = verify(conversations, desk.talk.id)
    return report.ok and report.requests_proven > 0


def say(desk, prompt, *attachments):
    async def session():
        try:
            return await desk.agent.run_turn(prompt, attachments)
        finally:
            await desk.model.close()

    return asyncio.run(session())


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (BROKEN, 400),
        ("messages.0.content.1.image.source.base64.data: not what its media type says", 400),
        ("image input is not supported - hint: you may need to provide the mmproj", 500),
        ("this model has no vision capability", 422),
        ("模型不支持图片输入", 400),
        ("invalid base64 data", 400),
        ("Input should be 'text'", 422),
        ("messages[0].content[1]: unexpected content type", 400),
        ("invalid content: expected string, got array", 400),
        ("Failed to load media", 500),
        ("Request contains an invalid argument.", 400),
        ("Bad Request", 400),
    ],
)  # fmt: skip
def test_an_image_that_the_server_refuses_is_left_out_and_asked_about_once_more(
    conversations, tmp_path, words, status
):
    with ScriptedServer([refuses("image", words, status)] * 4) as server:
        desk = Desk(conversations, server, tmp_path)
        assert say(desk, "look", b.image()) == "done"
        assert say(desk, "and now?") == "done"

    assert len(server.requests) == 3
    [fact] = facts(conversations, desk, ContentWithheld)
    assert fact.kinds == ("image",)
    assert words[:20] in fact.reason
    assert is_proven(conversations, desk)


def test_what_was_left_out_stays_out_after_a_restart_and_in_a_fork(conversations, tmp_path):
    with ScriptedServer([refuses("image")] * 5) as server:
        desk = Desk(conversations, server, tmp_path)
        say(desk, "look", b.image())
        for again in (desk.talk.id, conversations.fork(desk.talk.id)):
            other = Desk(conversations, server, tmp_path, at_hand=conversations.open(again))
            assert say(other, "and now?") == "done"

    assert len(server.requests) == 4


def test_an_image_in_a_tool_result_is_left_out_as_well(conversations, tmp_path):
    (tmp_path / "dot.png").write_bytes(base64.b64decode(b.DOT))
    script = [reply(call("read", path="dot.png")), *[refuses("image")] * 2]
    with ScriptedServer(script) as server:
        desk = Desk(conversations, server, tmp_path)
        assert say(desk, "shoot") == "done"

    assert "image" in kinds(server.requests[1].json)
    assert "the API refused it" in str(server.requests[-1].json)
    assert is_proven(conversations, desk)


@pytest.mark.parametrize("words", ["tool_result content must be a string", "Invalid file data"])
def test_it_is_found_in_a_result_by_words_that_do_not_name_it(conversations, tmp_path, words):
    (tmp_path / "dot.png").write_bytes(base64.b64decode(b.DOT))
    script = [reply(call("read", path="dot.png")), *[refuses("image", words)] * 2]
    with ScriptedServer(script) as server:
        assert say(Desk(conversations, server, tmp_path), "shoot") == "done"


def test_an_image_that_was_taken_before_stays_if_the_words_name_none(conversations, tmp_path):
    with ScriptedServer([reply("A dot."), refuse(400, "Bad Request")]) as server:
        desk = Desk(conversations, server, tmp_path)
        assert say(desk, "look", b.image()) == "done"
        assert say(desk, "and now?") == "failed"

    assert facts(conversations, desk, ContentWithheld) == []


def test_an_image_that_was_taken_before_stays(conversations, tmp_path):
    good, bad = b.image(), b.image(data=b.DOT[:60])

    def refuses_bad(request):
        seen = [block["source"]["data"] for block in blocks(request) if block["type"] == "image"]
        return refuse(400, BROKEN) if bad["source"]["data"] in seen else reply("Seen.")

    with ScriptedServer([refuses_bad] * 5) as server:
        desk = Desk(conversations, server, tmp_path)
        say(desk, "look", good)
        assert say(desk, "and this?", bad) == "done"

    assert kinds(server.requests[-1].json).count("image") == 1


@pytest.mark.parametrize(
    "words",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1.content.0: `thinking` blocks in the latest message cannot be modified",
        "The block is bound to a different conversation: thinking signature mismatch",
        "Unable to submit request because Thought signature is not valid",
    ],
)
def test_thinking_whose_signature_is_refused_in_any_form_costs_that_block(
    conversations, tmp_path, words
):
    script = [reply(thinking("hm"), "Yes."), *[refuses("thinking", words)] * 3]
    with ScriptedServer(script) as server:
        desk = Desk(conversations, server, tmp_path)
        say(desk, "go")
        assert say(desk, "and?") == "done"

    assert "Yes." in str(server.requests[-1].json)
    assert is_proven(conversations, desk)


def test_a_block_of_an_unknown_type_that_is_refused_is_left_out(conversations, tmp_path):
    words = "messages.1.content.0: Input tag 'hologram' found using 'type' does not match"
    script = [reply({"type": "hologram", "data": "x"}, "Yes."), *[refuses("hologram", words)] * 3]
    with ScriptedServer(script) as server:
        desk = Desk(conversations, server, tmp_path)
        say(desk, "go")
        assert say(desk, "and?") == "done"

    assert is_proven(conversations, desk)


def test_what_is_refused_even_so_names_the_suspect_and_how_to_go_on(conversations, tmp_path):
    with ScriptedServer([refuse(400, BROKEN)] * 2) as server:
        desk = Desk(conversations, server, tmp_path)
        assert say(desk, "look", b.image()) == "failed"

    prompt = desk.talk.messages()[0].originator_version
    assert len(server.requests) == 2
    assert f"entry {prompt} is suspected" in desk.talk.last_turn.error.message
    assert f"/tree {prompt}" in desk.talk.last_turn.error.message
    assert "/fork" in desk.talk.last_turn.error.message


def test_a_model_that_may_not_think_says_how_to_go_on(conversations, tmp_path):
    def answer(request):
        words = "adaptive thinking is not supported on this model"
        return refuse(400, words) if "thinking" in request else reply("Yes.")

    with ScriptedServer([answer] * 3) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.at_hand.record(lambda talk: talk.change_model("claude-opus-4-6", max_tokens=4096))
        desk.at_hand.record(lambda talk: talk.change_thinking_level("low"))
        assert say(desk, "go") == "failed"
        assert "/thinking off" in desk.talk.last_turn.error.message
        desk.at_hand.record(lambda talk: talk.change_thinking_level("off"))
        assert say(desk, "go") == "done"


def test_a_refusal_that_names_nothing_changes_nothing(conversations, tmp_path):
    with ScriptedServer([refuse(400, "Your credit balance is too low")]) as server:
        desk = Desk(conversations, server, tmp_path)
        assert say(desk, "look", b.image()) == "failed"

    assert facts(conversations, desk, ContentWithheld) == []


# -- limits --------------------------------------------------------------------------------------


def test_the_longest_answer_that_the_server_names_is_taken(conversations, tmp_path):
    def limited(request):
        asked = request["max_tokens"]
        words = f"max_tokens: {asked} > 1000, which is the maximum allowed number of output tokens"
        return refuse(400, words) if asked > 1000 else reply("Short.")

    with ScriptedServer([limited] * 4) as server:
        desk = Desk(conversations, server, tmp_path)
        assert say(desk, "go") == "done"
        assert say(desk, "again") == "done"

    assert [request.json["max_tokens"] for request in server.requests] == [4096, 1000, 1000]
    assert [fact.max_tokens for fact in facts(conversations, desk, LimitsLearned)] == [1000]
    assert is_proven(conversations, desk)


WINDOW = 8_192


def of_window(words):
    """A server with a small window, which it names as *words* say."""

    def answer(request):
        sent = len(str(request["messages"])) // 4 + len(str(request["tools"])) // 4
        if sent + request["max_tokens"] > WINDOW:
            return refuse(400, words.format(sent=sent, window=WINDOW))
        return reply("## Goal\n- notes" if "Summarise" in str(request["messages"][-1]) else "Ok.")

    def without_tools(request):
        return answer({"tools": [], **request})

    return without_tools


@pytest.mark.parametrize(
    "words",
    [
        "the request exceeds the available context size ({sent} tokens), n_ctx={window}",
        "This model's maximum context length is {window} tokens. However, you requested {sent} tokens",
        "prompt token count of {sent} exceeds the limit of {window}",
        "prompt is too long",
    ],
)
def test_a_window_that_nobody_knew_is_learned_and_the_conversation_goes_on(
    conversations, tmp_path, words
):
    with ScriptedServer([of_window(words)] * 40) as server:
        desk = Desk(conversations, server, tmp_path)
        for number in range(8):
            assert say(desk, f"Note number {number}: {LONG}") == "done"

    learned = facts(conversations, desk, LimitsLearned)
    assert learned[-1].context_window == WINDOW if "{window}" in words else learned
    assert [e for e in desk.talk.entries.values() if isinstance(e, Compacted)]
    assert is_proven(conversations, desk)
    again = conversations.get(conversations.fork(desk.talk.id))
    assert again.known_limits == desk.talk.known_limits
    assert context(again, again.leaf) == context(desk.talk, desk.talk.leaf)


@pytest.mark.parametrize("most", [100, 4096, 16_384])
def test_a_tiny_request_that_is_called_too_long_teaches_nothing(conversations, tmp_path, most):
    """A gateway out of order said so of every request: the window was 4,096 tokens ever after."""
    script = [refuse(400, "prompt is too long")] * 8
    with ScriptedServer(script) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.at_hand.record(lambda talk: talk.change_model(b.MODEL, max_tokens=most))
        window = desk.agent.compactor.window
        assert say(desk, "hi") == "failed"
        assert desk.agent.compactor.window == window
    with ScriptedServer([reply("Hi.")]) as server:
        again = Desk(conversations, server, tmp_path, at_hand=conversations.open(desk.talk.id))
        assert say(again, "hi") == "done"

    assert server.requests[0].json["max_tokens"] == most
    assert is_proven(conversations, again)


def test_a_window_that_was_guessed_is_kept_once_there_is_an_answer_in_it(conversations, tmp_path):
    with ScriptedServer([of_window("prompt is too long")] * 4) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.at_hand.record(lambda talk: talk.change_model(b.MODEL, max_tokens=16_384))
        assert say(desk, "hi") == "done"
        assert say(desk, "and?") == "done"

    assert len(server.requests) == 3
    assert 4_096 < desk.agent.compactor.window <= 10_000
    assert is_proven(conversations, desk)


def test_a_window_that_was_guessed_is_taken_back_after_a_stop_if_it_helped_nothing(
    conversations, tmp_path
):
    """A stopped turn is no answer in it: the guess stayed for good, whatever was refused later."""
    too_long = refuse(400, "prompt is too long")

    async def stop_and_say(desk, gate):
        turn = asyncio.create_task(desk.agent.run_turn("hi"))
        await asyncio.to_thread(gate.wait)
        turn.cancel()
        return [await turn, await desk.say("and?")]

    with Gate() as gate:
        script = [too_long, reply("Never.", gate=gate, gate_after=0), *[too_long] * 8]
        with ScriptedServer(script) as server:
            desk = Desk(conversations, server, tmp_path)
            desk.at_hand.record(lambda talk: talk.change_model(b.MODEL, max_tokens=16_384))
            window = desk.agent.compactor.window
            assert asyncio.run(stop_and_say(desk, gate)) == ["interrupted", "failed"]

    assert facts(conversations, desk, LimitsLearned)
    assert desk.agent.compactor.window == window


def test_a_refusal_of_unknown_words_is_tried_with_one_compaction_where_little_room_is_left(
    conversations, tmp_path
):
    def obscure(request):
        if len(str(request["messages"])) > 9_000:
            return refuse(400, "E1017")
        return reply("## Goal" if "Summarise" in str(request["messages"][-1]) else LONG)

    with ScriptedServer([obscure] * 12) as server:
        desk = Desk(conversations, server, tmp_path, window=6_000)
        assert say(desk, "one") == "done"
        assert say(desk, f"two {LONG[:3000]}") == "done"

    [compaction] = [e for e in desk.talk.entries.values() if isinstance(e, Compacted)]
    assert compaction.reason == "overflow"


def test_what_was_learned_and_left_out_is_in_a_snapshot(home):
    with Conversations({"LEFTFOLD_DURABILITY": "os"}) as conversations:
        at_hand = conversations.start(lambda i, t: b.Conversation.start(i, timestamp=t, cwd="/w"))
        at_hand.record(lambda talk: talk.change_model("m", max_tokens=100))
        at_hand.record(lambda talk: talk.append_prompt("look", [b.image()]))
        at_hand.record(lambda talk: talk.learn_limits("m", max_tokens=50))
        at_hand.record(lambda talk: talk.withhold([talk.leaf], ["image"], reason="no"))
        conversations.keep_snapshot(at_hand.conversation)
        again = conversations.get(at_hand.id)

        assert again.restored_from == again.version
        assert context(again, again.leaf) == context(at_hand.conversation, again.leaf)
        assert context(again, again.leaf)["max_tokens"] == 50


# -- calls that nobody can run -------------------------------------------------------------------


def test_calls_with_the_same_id_or_none_are_answered_and_asked_for_again(conversations, tmp_path):
    bad = {"type": "tool_use", "name": "bash", "input": {"command": "touch made"}, "id": ""}
    script = [
        reply(
            call("bash", call_id="a", command="echo 1"),
            call("bash", call_id="a", command="touch made"),
        ),
        reply(bad),
        reply("Done."),
    ]
    with ScriptedServer(script) as server:
        desk = Desk(conversations, server, tmp_path)
        assert say(desk, "go") == "done"

    told = [block["content"] for block in server.requests[1].json["messages"][-1]["content"]]
    assert told[0] == "1\n"
    assert "has its id" in told[1]
    assert "it has no id" in str(server.requests[2].json["messages"][-1])
    assert not (tmp_path / "made").exists()


# -- fields of the request -----------------------------------------------------------------------


def test_a_server_that_keeps_no_beginnings_is_asked_without_that_field(conversations, tmp_path):
    def answer(request):
        words = "cache_control: Extra inputs are not permitted"
        return refuse(400, words) if "cache_control" in request else reply("Seen.")

    with ScriptedServer([answer] * 3) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.at_hand.record(lambda talk: talk.change_model(b.MODEL, max_tokens=99, caching=True))
        assert say(desk, "look", b.image()) == "done"
        assert say(desk, "and?") == "done"

    assert len(server.requests) == 3
    assert (desk.talk.model, desk.talk.max_tokens) == (b.MODEL, 99)
    assert facts(conversations, desk, ContentWithheld) == []
    assert is_proven(conversations, desk)


@pytest.mark.parametrize(
    ("error", "named", "way_out"),
    [
        ("tools.0.custom.strict: Extra inputs are not permitted", "tools.0.custom.strict", "--tools"),
        ("context_management: Extra inputs are not permitted", "context_management", "ANTHROPIC_"),
        ("unknown field `thinking`", "thinking", "/thinking off"),
    ],
)  # fmt: skip
def test_a_field_that_a_server_does_not_know_is_named_and_no_content_is_blamed(
    conversations, tmp_path, error, named, way_out
):
    with ScriptedServer([reply(thinking("hm"), "Yes."), refuse(400, error)]) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.at_hand.record(lambda talk: talk.change_model("claude-opus-4-6", max_tokens=4096))
        desk.at_hand.record(lambda talk: talk.change_thinking_level("low"))
        assert say(desk, "look", b.image()) == "done"
        assert say(desk, "and?", b.image()) == "failed"

    message = desk.talk.last_turn.error.message
    assert named in message
    assert way_out in message
    assert "suspected" not in message
    assert len(server.requests) == 2
    assert facts(conversations, desk, ContentWithheld) == []
