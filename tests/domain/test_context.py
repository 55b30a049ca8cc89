"""What the model gets, by example: the cases of the field, each as a sentence."""

import copy

import pytest

from domain.calls import NEVER_STARTED, NO_ID, NO_INPUT, NO_NAME, OUTCOME_UNKNOWN, SAME_ID
from domain.conversation import Conversation
from domain.errors import UnknownEntryError
from domain.projections.context import context
from domain.projections.message_builder import CONTINUE, LOST
from domain.projections.parts import INTERRUPTED, NO_OUTPUT
from tests import builders as b
from tests.api_rules import prefix_violations, violations


def request(*stream, leaf="newest"):
    """The request for these events; every one of them keeps the rules of the API."""
    return request_of(b.conversation(b.model(), *stream), leaf)


def request_of(talk, leaf="newest"):
    found = context(talk, talk.leaf if leaf == "newest" else leaf)
    assert violations(found) == []
    return found


def said(*stream):
    """Who says what: (role, [texts, or type of block and its id])."""
    return [
        (message["role"], [_brief(block) for block in message["content"]])
        for message in request(*stream)["messages"]
    ]


def _brief(block):
    match block["type"]:
        case "text":
            return block["text"]
        case "tool_use":
            return f"call {block['id']}"
        case "tool_result":
            return f"result {block['tool_use_id']}: {block['content']}"
        case kind:
            return kind


# -- A. calls and results ------------------------------------------------------------------------


def test_a_call_that_was_interrupted_while_it_ran_is_answered_as_unknown():  # A1, A2
    last = said(b.user("go"), b.assistant(b.tool_use("a")), b.tool_started("a"), b.user("hi"))[-1]

    assert last == ("user", [f"result a: {OUTCOME_UNKNOWN}", "hi"])


def test_a_call_that_never_started_is_answered_as_such():  # A1
    last = said(b.user("go"), b.assistant(b.tool_use("a")), b.user("hi"))[-1]

    assert last == ("user", [f"result a: {NEVER_STARTED}", "hi"])


def test_a_synthesised_result_is_an_error():  # A1
    last = request(b.user("go"), b.assistant(b.tool_use("a")))["messages"][-1]

    assert last["content"][0]["is_error"] is True


def test_a_log_that_ends_with_a_call_makes_a_request_that_can_be_sent():  # A2
    assert said(b.user("go"), b.assistant(b.tool_use("a")))[-1][0] == "user"


def test_the_first_of_two_results_is_kept():  # A3
    stream = [
        b.user("go"),
        b.assistant(b.tool_use("a")),
        b.result("a", "one"),
        b.result("a", "two"),
    ]

    assert said(*stream)[-1] == ("user", ["result a: one"])


def test_a_late_result_after_a_recorded_recovery_changes_nothing():  # A3
    before = [
        b.user("go"),
        b.assistant(b.tool_use("a")),
        b.result("a", OUTCOME_UNKNOWN),
        b.user("hi"),
    ]

    assert said(*before, b.result("a", "late")) == said(*before)


@pytest.mark.parametrize("kind", ["orphan first", "orphan later"])
def test_a_result_whose_call_was_lost_is_left_out(kind):  # A6
    stream = b.numbered(
        b.user("go"),
        b.assistant(b.tool_use("z")),
        b.result("z"),
        b.assistant(b.tool_use("a")),
        b.result("a"),
    )
    talk = Conversation.replay(None, b.lost(stream, *([1, 2] if kind == "orphan first" else [4])))

    results = [m for m in request_of(talk)["messages"] if "result" in str(m)]

    assert "'tool_use_id': 'a'" in str(results) if kind == "orphan first" else len(results) == 1


def test_a_result_far_from_its_call_does_not_answer_it():  # A6
    stream = [
        b.user("go"),
        b.assistant(b.tool_use("a")),
        b.user("x"),
        b.assistant("y"),
        b.result("a"),
    ]

    assert said(*stream)[2] == ("user", [f"result a: {NEVER_STARTED}", "x"])


def test_results_stand_before_text_and_in_call_order():  # A13
    calls = b.assistant(b.tool_use("a"), b.tool_use("b"), b.tool_use("c"))
    stream = [b.user("go"), calls, b.note("listing"), b.result("c", "3"), b.result("a", "1")]

    expected = ["result a: 1", f"result b: {NEVER_STARTED}", "result c: 3", "listing"]
    assert said(*stream)[-1] == ("user", expected)


@pytest.mark.parametrize(
    "content", ["", " \n", [], [b.text(" ")], [{"type": "hologram"}], [3], None]
)
def test_a_result_without_output_says_so(content):  # A13
    stream = [b.user("go"), b.assistant(b.tool_use("a")), b.result("a", content)]

    assert said(*stream)[-1] == ("user", [f"result a: {NO_OUTPUT}"])


def test_a_result_of_two_texts_and_an_image_is_one_result():  # A13
    content = [b.text("one"), b.text("two"), b.image()]
    last = request(b.user("go"), b.assistant(b.tool_use("a")), b.result("a", content))["messages"][
        -1
    ]

    assert last["content"] == [b.tool_result("a", content)]


def test_starting_and_ending_a_tool_adds_nothing_but_its_one_result():  # A14
    stream = [b.user("go"), b.assistant(b.tool_use("a")), b.tool_started("a"), b.result("a", "1")]

    assert said(*stream, b.turn_ended())[-1] == ("user", ["result a: 1"])


def test_a_second_process_sends_what_one_process_would_have_sent():  # A15
    stream = b.numbered(
        b.model(), b.user("go"), b.assistant(b.tool_use("a")), b.tool_started("a"), b.result("a"),
        b.assistant("done"), b.user("and now"),
    )  # fmt: skip
    one = Conversation.replay(None, stream)

    for cut in range(len(stream)):
        two = Conversation.replay(Conversation.replay(None, stream[:cut]), stream[cut:])
        assert request_of(two) == request_of(one)


def test_a_call_cut_off_by_max_tokens_is_answered_by_the_error_in_the_log():  # A17
    cut = b.assistant(b.tool_use("a"), stop_reason="max_tokens")
    refusal = b.result("a", "cut off", is_error=True)

    assert said(b.user("go"), cut, refusal)[-1] == ("user", ["result a: cut off"])


def test_a_call_with_the_id_of_another_one_is_answered_with_an_error_that_says_so():
    stream = [b.user("go"), b.assistant(b.tool_use("a"), b.tool_use("a")), b.result("a", "1")]

    assert said(*stream)[1:] == [
        ("assistant", ["call a", "call a_2"]),
        ("user", ["result a: 1", f"result a_2: {SAME_ID}"]),
    ]


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"name": "bash", "input": {}}, NO_ID),
        ({"id": None, "name": "bash", "input": {}}, NO_ID),
        ({"id": 7, "name": "bash", "input": {}}, NO_ID),
        ({"id": "", "name": "bash", "input": {}}, NO_ID),
        ({"id": "call", "input": {}}, NO_NAME),
        ({"id": "call", "name": ["bash"], "input": {}}, NO_NAME),
        ({"id": "call", "name": "bash", "input": [1]}, NO_INPUT),
        ({"id": "call", "name": "bash"}, NO_INPUT),
    ],
)
def test_a_call_that_nobody_can_run_is_answered_with_an_error_that_says_why(odd, told):
    odd = {"type": "tool_use", **odd}
    stream = [b.user("go"), b.assistant(odd, b.tool_use("b")), b.result("b", "2")]

    assert said(*stream)[1:] == [
        ("assistant", ["call call", "call b"]),
        ("user", [f"result call: {told}", "result b: 2"]),
    ]
    talk = b.conversation(b.model(), *stream)
    assert [call.fault for call in talk.faulty_calls()] == [told]
    assert b.conversation(b.model(), *stream[:2]).open_calls()[0].id == "b"


def test_a_second_start_of_the_same_id_does_not_start_the_first_call():
    stream = [
        b.user("go"), b.assistant(b.tool_use("a")), b.user("again"),
        b.assistant(b.tool_use("a")), b.tool_started("a"),
    ]  # fmt: skip
    first, second = said(*stream)[2], said(*stream)[4]

    assert first == ("user", [f"result a: {NEVER_STARTED}", "again"])
    assert second == ("user", [f"result a_2: {OUTCOME_UNKNOWN}"])


def test_a_start_on_another_branch_does_not_start_the_call_on_this_one():
    stream = [
        b.user("go", version=2), b.assistant(b.tool_use("a"), version=3), b.user("x", version=4),
        b.assistant(b.tool_use("a"), version=5), b.tool_started("a"), b.moved(4),
        b.assistant(b.tool_use("a"), version=8),
    ]  # fmt: skip

    assert said(*stream)[-1] == ("user", [f"result a_2: {NEVER_STARTED}"])


def test_a_call_after_which_events_are_lost_is_not_said_to_have_never_started():
    stream = b.numbered(
        b.user("go"), b.assistant(b.tool_use("a")), b.tool_started("a"), b.user("hi")
    )
    talk = Conversation.replay(None, b.lost(stream, 3))

    assert OUTCOME_UNKNOWN in str(request_of(talk)["messages"][-1])


def test_a_call_of_a_tool_with_an_impossible_name_is_kept_so_that_the_model_hears_of_it():
    stream = [b.user("go"), b.assistant(b.tool_use("a", "my tool")), b.result("a", "no such tool")]
    messages = request(*stream)["messages"]

    assert messages[1]["content"][0]["name"] == "my_tool"
    assert messages[2]["content"][0]["content"] == "no such tool"


# -- B. blank and interrupted --------------------------------------------------------------------


@pytest.mark.parametrize("blank", ["", "\n\n", " \t", "\u2028\u3000"])
def test_a_blank_text_is_never_sent(blank):  # B1
    stream = [b.user("go"), b.assistant(blank, "yes"), b.user(blank, "hi")]

    assert said(*stream)[1:] == [("assistant", ["yes"]), ("user", ["hi"])]


def test_a_message_with_no_block_left_is_dropped_and_the_roles_still_alternate():  # B1, B2
    stream = [b.user("go"), b.assistant("\n\n"), b.user("hi")]

    assert said(*stream) == [("user", ["go", "hi"])]


@pytest.mark.parametrize("why", ["interrupted", "failed"])
def test_what_was_said_before_an_interruption_stays_and_the_model_learns_of_it(why):  # B5
    stream = [b.user("go"), b.assistant("I was ab", stop_reason=why), b.user("hi")]

    assert said(*stream)[1:] == [("assistant", ["I was ab"]), ("user", [INTERRUPTED, "hi"])]


def test_content_that_is_null_is_nothing_said():  # B5
    odd = b.message({"role": "assistant", "content": None}, model=b.MODEL)

    assert said(b.user("go"), odd, b.user("hi")) == [("user", ["go", "hi"])]


# -- C. thinking ---------------------------------------------------------------------------------


def test_thinking_of_the_same_model_goes_back_byte_for_byte_in_its_place():  # C2, C5
    blocks = [
        b.thinking(" e\u0301\u2028 ", "sig=="), b.redacted("xyz"), b.text("so "),
        b.thinking("more", "sig2"), b.tool_use("a", command="ls"),
    ]  # fmt: skip

    assert request(b.user("go"), b.assistant(*blocks))["messages"][1]["content"] == blocks


@pytest.mark.parametrize("signature", ["", None, 3])
def test_thinking_without_a_signature_is_never_sent(signature):  # C1
    answer = b.assistant(b.thinking("hm", signature), "yes")

    assert said(b.user("go"), answer)[1] == ("assistant", ["yes"])


@pytest.mark.parametrize("author", ["claude-other", None, ""])
def test_thinking_of_another_model_is_never_sent(author):  # C3
    answer = b.assistant(b.thinking("hm"), b.redacted(), "yes", model=author)

    assert said(b.user("go"), answer)[1] == ("assistant", ["yes"])


def test_thinking_comes_back_when_its_model_does():  # C3
    history = [b.user("go"), b.assistant(b.thinking("hm"), "yes"), b.user("hi")]

    assert said(*history, b.model("claude-other"))[1] == ("assistant", ["yes"])
    assert said(*history, b.model("claude-other"), b.model())[1] == (
        "assistant",
        ["thinking", "yes"],
    )


def test_an_answer_of_nothing_but_thinking_is_left_out():
    assert said(b.user("go"), b.assistant(b.thinking("hm")), b.user("hi")) == [
        ("user", ["go", "hi"])
    ]


def test_an_answer_never_ends_in_thinking():
    stream = [b.user("go"), b.assistant("so", b.thinking("hm"), stop_reason="interrupted")]

    assert said(*stream)[1] == ("assistant", ["so"])


# -- E, L. text, ids, odd shapes -----------------------------------------------------------------


def test_line_separators_and_nuls_come_through():  # E1, E8
    odd = "a\u2028b\x85c\x0cd\x1ce\0"

    assert said(b.user(odd)) == [("user", [odd])]


def test_a_lone_surrogate_that_an_old_log_holds_becomes_a_replacement_character():  # E3
    body = b.msgspec.Raw(rb'{"role":"user","content":[{"type":"text","text":"x\ud83d"}]}')

    assert said(b.message(body)) == [("user", ["x\ufffd"])]


def test_ids_that_the_api_refuses_are_mapped_alike_in_call_and_result():  # L1
    ids = ["functions.bash:0", "call_x|fc_y", "Write:6", "", "é"]
    stream = [
        b.user("go"),
        b.assistant(*map(b.tool_use, ids)),
        *(b.result(i, f"<{i}>") for i in ids),
    ]
    _, asked, answered = request(*stream)["messages"]

    sent = [block["id"] for block in asked["content"]]
    assert sent == [block["tool_use_id"] for block in answered["content"]]
    assert [block["content"] for block in answered["content"]] == [f"<{i}>" for i in ids]
    assert len(set(sent)) == len(ids)


def test_two_ids_that_look_alike_after_mapping_stay_two():  # L1
    stream = [b.user("go"), b.assistant(b.tool_use("a.b"), b.tool_use("a:b"), b.tool_use("a_b"))]
    ids = [block["id"] for block in request(*stream)["messages"][1]["content"]]

    assert ids == ["a_b", "a_b_2", "a_b_3"]


def test_a_good_id_goes_out_as_it_came():
    stream = [b.user("go"), b.assistant(b.tool_use("toolu_01-AZ_9"))]

    assert request(*stream)["messages"][1]["content"][0]["id"] == "toolu_01-AZ_9"


def test_an_id_that_comes_again_in_a_later_answer_is_made_unique():
    turn = [b.assistant(b.tool_use("a")), b.result("a", "x"), b.user("go on")]

    found = said(b.user("go"), *turn, *turn)
    assert found[3:5] == [("assistant", ["call a_2"]), ("user", ["result a_2: x", "go on"])]


def test_a_block_of_an_unknown_type_goes_back_as_it_came():
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": None}}

    assert request(b.user("go"), b.assistant(block))["messages"][1]["content"] == [block]


def test_nulls_and_breakpoints_in_stored_blocks_are_not_sent():  # Z15
    block = b.text("yes", citations=None, cache_control={"type": "ephemeral"})

    assert request(b.user("go"), b.assistant(block))["messages"][1]["content"] == [b.text("yes")]


def test_what_is_neither_the_users_nor_the_assistants_is_not_sent():
    assert said(b.user("go"), b.message({"role": "tool", "content": "x"})) == [("user", ["go"])]


def test_a_call_in_a_users_message_and_a_result_in_an_assistants_are_not_sent():
    stream = [b.user("go", b.tool_use("a")), b.assistant("yes", b.tool_result("a")), b.user("hi")]

    assert said(*stream) == [("user", ["go"]), ("assistant", ["yes"]), ("user", ["hi"])]


def test_an_image_that_the_api_would_refuse_is_left_out():
    stream = [b.user("look", b.image(), b.image(data="?"), b.image(media_type="image/tiff"))]

    assert request(*stream)["messages"][0]["content"] == [b.text("look"), b.image()]


# -- roles ---------------------------------------------------------------------------------------


def test_an_empty_path_is_a_request_that_can_be_sent():
    assert said() == [("user", [CONTINUE])]


def test_prompts_in_a_row_are_one_message():
    assert said(b.user("a"), b.user("b"), b.note("c")) == [("user", ["a", "b", "c"])]


def test_a_note_that_the_model_does_not_see_is_not_sent():
    assert said(b.user("a"), b.note("b", visible=False)) == [("user", ["a"])]


def test_the_place_of_a_prompt_that_was_lost_is_marked():
    stream = b.numbered(b.user("go"), b.assistant("one"), b.user("lost"), b.assistant("two"))
    talk = Conversation.replay(None, b.lost(stream, 3))

    assert request_of(talk)["messages"][2] == {"role": "user", "content": [b.text(LOST)]}


def test_a_history_whose_beginning_is_lost_begins_with_the_user():
    stream = b.numbered(b.user("lost"), b.assistant("one"), b.user("hi"))

    assert request_of(Conversation.replay(None, stream[1:]))["messages"][0]["content"] == [
        b.text(LOST)
    ]


def test_an_answer_that_was_asked_for_without_a_prompt_keeps_the_words_it_was_asked_with():
    first = [b.user("go"), b.assistant("one")]
    before, after = request(*first), request(*first, b.assistant("two"), b.user("hi"))

    assert prefix_violations(before, after) == []


def test_a_summary_of_a_branch_is_told_to_the_model():
    found = said(b.user("a"), b.branch_summarized("we tried x", left=1))

    assert "we tried x" in found[0][1][1]


# -- compaction ----------------------------------------------------------------------------------

TOOL_HEAVY = [
    b.user("one"), b.assistant(b.thinking("hm"), b.tool_use("a"), b.tool_use("b")), b.tool_started("a"),
    b.result("b", "B"), b.result("a", "A"), b.assistant("so", b.tool_use("a")), b.result("a", "AA"),
    b.note("!ls"), b.assistant(b.tool_use("c")), b.user("stop"), b.assistant("fine"), b.user("two"),
]  # fmt: skip


@pytest.mark.parametrize("cut", [None, *range(len(TOOL_HEAVY) + 4)])
@pytest.mark.parametrize(
    "tail", [[], [b.user("now")], [b.assistant("ok", b.tool_use("d"))], [b.result("c")]]
)
def test_a_compaction_may_cut_anywhere(cut, tail):  # K1
    stream = [*TOOL_HEAVY, b.compacted("the past", first_kept=cut), *tail]

    messages = request(*stream)["messages"]

    assert "the past" in messages[0]["content"][0]["text"]


@pytest.mark.parametrize("length", range(1, len(TOOL_HEAVY) + 1))
def test_a_compaction_may_come_at_any_time(length):  # K1
    assert said(*TOOL_HEAVY[:length], b.compacted("the past"), b.user("now"))[-1][1][-1] == "now"


def test_the_newest_compaction_stands_for_the_ones_before():
    stream = [
        b.user("a", version=2), b.assistant("b", version=3), b.compacted("first", first_kept=3, version=4),
        b.user("c", version=5), b.assistant("d", version=6), b.compacted("second", first_kept=5, version=7),
    ]  # fmt: skip

    found = said(*stream)

    assert "second" in found[0][1][0]
    assert "first" not in str(found)
    assert found[0][1][1:] == ["c"]
    assert found[1] == ("assistant", ["d"])


def test_going_back_before_a_compaction_brings_everything_back():
    stream = [b.user("a", version=2), b.compacted("gone"), b.moved(2)]

    assert said(*stream) == [("user", ["a"])]


# -- the body around the messages ----------------------------------------------------------------


def test_the_body_has_what_the_facts_say():
    stream = [
        b.model("claude-opus-4-6", 77, caching=True),
        b.instructions("Be kind."),
        b.thinking_level("high"),
    ]

    assert {**request(*stream), "messages": None} == {
        "model": "claude-opus-4-6",
        "max_tokens": 77,
        "messages": None,
        "stream": True,
        "system": "Be kind.",
        "tools": [b.BASH],
        "cache_control": {"type": "ephemeral"},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
    }


def test_a_model_that_thinks_by_budget_is_given_one():
    stream = [b.model("claude-sonnet-4-5", 9000), b.thinking_level("low")]

    assert request(*stream)["thinking"] == {"type": "enabled", "budget_tokens": 2048}


def test_a_budget_is_given_only_if_it_leaves_room_for_an_answer():
    assert "thinking" not in request(b.model("claude-sonnet-4-5", 2000), b.thinking_level("max"))


@pytest.mark.parametrize("thought", [[], [b.thinking("hm")]])
def test_in_a_tool_loop_a_budget_is_given_only_if_the_loop_began_with_thinking(thought):
    stream = [
        b.model("claude-sonnet-4-5", 9000),
        b.thinking_level("low"),
        b.user("go"),
        b.assistant(*thought, b.tool_use("a"), model="claude-sonnet-4-5"),
        b.result("a"),
    ]

    assert ("thinking" in request(*stream)) == bool(thought)
    assert "thinking" in request(*stream, b.assistant("done"), b.user("next"))


@pytest.mark.parametrize("level", ["off", "banana", ""])
def test_a_level_that_is_none_asks_for_no_thinking(level):
    assert "thinking" not in request(b.thinking_level(level))


@pytest.mark.parametrize("tools", [None, {}, "x", [3], [{}], [{"name": "a b"}], []])
def test_odd_tools_are_not_offered(tools):
    assert "tools" not in request(b.instructions("x", tools))


def test_a_tool_is_offered_once():
    assert request(b.instructions("x", (b.BASH, b.BASH | {"description": "Another."})))[
        "tools"
    ] == [b.BASH]


def test_a_blank_system_prompt_is_not_sent():
    assert "system" not in request(b.instructions(" \n"))


def test_a_log_without_a_model_makes_a_request_all_the_same():
    talk = b.conversation(b.user("hi"))

    assert violations(context(talk, talk.leaf)) == []


def test_todays_tools_are_offered_and_old_calls_still_replay():  # L5
    stream = [
        b.user("go"),
        b.assistant(b.tool_use("a", "old_tool")),
        b.result("a"),
        b.instructions(),
    ]
    found = request(*stream)

    assert found["tools"] == [b.BASH]
    assert found["messages"][1]["content"][0]["name"] == "old_tool"


def test_a_leaf_that_is_no_entry_is_refused():
    with pytest.raises(UnknownEntryError):
        context(b.conversation(b.started()), 1)


def test_changing_a_request_changes_nothing_in_the_conversation():
    talk = b.conversation(
        b.model(), b.instructions(), b.user("go"), b.assistant(b.tool_use("a", x=[1]))
    )
    first = request_of(talk)
    untouched = copy.deepcopy(first)
    first["tools"][0]["name"] = "changed"
    first["messages"][1]["content"][0]["input"]["x"].append(2)

    assert request_of(talk) == untouched
