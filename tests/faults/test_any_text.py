"""What comes back is what went in, or its stated replacement, over every persistence module.

Stated: lone surrogates and undecodable bytes are U+FFFD; NaN and infinities are null; what nests
deeper than `MAX_NESTING` is `TOO_DEEP`. Cases E1-E8, Z1-Z7, Z9, Z12.
"""

import json
import math

import pytest

from app.application import Conversations
from app.verification import verify
from domain.conversation import Conversation
from domain.projections.context import context, request_of
from domain.text import MAX_NESTING, TOO_DEEP
from tests.api_rules import violations
from tests.app.programs import Program, events, results, said, until
from tests.server import ScriptedServer, call, reply

BAD = "\N{REPLACEMENT CHARACTER}"
TEXTS = {
    "line separators": ("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei", None),
    "NUL": ("a\0b\0", None),
    "a high surrogate": ("half \ud83d of it", f"half {BAD} of it"),
    "a low surrogate": ("half \udc9f", f"half {BAD}"),
    "a pair of halves": ("\ud83d\ude00", "\U0001f600"),
    "undecodable bytes": (b"caf\xe9 \xff".decode("utf-8", "surrogateescape"), f"caf{BAD} {BAD}"),
    "astral": ("\U0001d11e \U0010ffff \U0001f469\u200d\U0001f680", None),
    "combining": ("e\u0301 \u0065\u0323\u0302 \u00e9", None),
    "not a character": ("\ufffe\uffff\ufdd0", None),
    "bidi": ("\u202egnp.exe\u202c \u2067x\u2069 \ufeff", None),
    "looks like records": ('}{"v":3,"topic":"Renamed","state":{}}\n{"v":4}', None),
    "looks like escapes": (r"\ud83d \u0000 \n \"", None),
    "CR and LF": ("a\rb\r\nc\n\n\rd", None),
    "control": ("".join(map(chr, range(1, 32))) + "\x7f\x80\x9b", None),
}


def nested(depth, inner="x"):
    for _ in range(depth):
        inner = [inner]
    return inner


def depth_of(value):
    depth = 0
    while isinstance(value, list):
        value, depth = value[0], depth + 1
    return depth, value


VALUES = {
    "twenty digits": (12345678901234567890, None),
    "more than 64 bits": (123456789012345678901234567890, None),
    "negative": (-(10**25), None),
    "small": (5e-324, None),
    "floats": ([0.1, 1e308, -0.0, 1.0], None),
    "NaN": (math.nan, (None,)),
    "infinity": ([math.inf, -math.inf], ([None, None],)),
    "transcoded": ({"_type_": "tuple_as_list", "_data_": [1, 2]}, None),
    "transcoded by name": ({"_type_": "os:system", "_data_": "true"}, None),
    "keys": ({"": 1, "a\u2028b": 2, "\0": 3, "__proto__": 4}, None),
    "surrogate key": ({"\ud83d": 1}, ({BAD: 1},)),
    "booleans and null": ([True, False, None, 0, "", [], {}], None),
    "deep": (nested(300), None),
}


def begin(conversation_id, timestamp):
    talk = Conversation.start(conversation_id, timestamp=timestamp, cwd="/work")
    talk.change_model("claude-test", max_tokens=1000)
    return talk


def expected_of(case):
    given, stated = case
    return given if stated is None else stated


def reopened(conversations, conversation_id):
    """The conversation as another look at the same store reads it, checked in full."""
    if conversations.store is not None:
        conversations.store.close()
    report = verify(conversations, conversation_id)
    assert report.findings == ()
    return conversations.get(conversation_id)


def ask(at_hand, *blocks):
    talk = at_hand.conversation
    request, version = request_of(talk, talk.leaf), talk.version
    assert violations(request.content) == []
    at_hand.record(
        lambda talk: talk.append_answer(
            list(blocks),
            stop_reason="tool_use",
            request_digest=request.digest(),
            request_version=version,
        )
    )


# -- as any part of a conversation -----------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_any_text_comes_back_as_prompt_input_result_name_label_note_and_summary(
    conversations, name
):
    given, expected = TEXTS[name][0], expected_of(TEXTS[name])
    at_hand = conversations.start(begin)
    at_hand.record(lambda talk: talk.append_prompt(given + "."))
    ask(
        at_hand,
        {"type": "text", "text": given + "."},
        {"type": "tool_use", "id": "one", "name": "bash", "input": {"command": given, given: 1}},
        {"type": "tool_use", "id": "two", "name": "bash", "input": {}},
    )
    at_hand.record(lambda talk: talk.append_tool_result("one", given))
    parts = [{"type": "text", "text": given + "."}]
    at_hand.record(lambda talk: talk.append_tool_result("two", parts))
    at_hand.record(lambda talk: talk.append_note("!cmd", given, visible=True))
    at_hand.record(lambda talk: talk.rename(f"name {given}"))
    at_hand.record(lambda talk: talk.label(talk.leaf, f"label {given}"))
    at_hand.record(lambda talk: talk.queue_prompt(given + "."))
    talk = reopened(conversations, at_hand.id)
    prompt, answer, one, two = talk.messages()

    assert prompt.content.text == expected + "."
    assert answer.content.text == expected + "."
    assert answer.content.tool_uses[0]["input"] == {"command": expected, expected: 1}
    assert one.content.blocks[0]["content"] == expected
    assert two.content.blocks[0]["content"] == [{"type": "text", "text": expected + "."}]
    assert talk.entries[talk.leaf].content == expected
    assert talk.name == " ".join(f"name {expected}".split())
    assert talk.labels == {talk.leaf: " ".join(f"label {expected}".split())}
    assert list(talk.queue.values()) == [expected + "."]
    assert violations(context(talk, talk.leaf)) == []
    at_hand.record(
        lambda talk: talk.compact(given + ".", first_kept=None, tokens_before=1, reason="")
    )
    talk = reopened(conversations, at_hand.id)
    assert talk.entries[talk.leaf].summary == expected + "."


@pytest.mark.parametrize("name", VALUES)
def test_any_json_comes_back_as_a_tools_input(conversations, name):
    given, stated = VALUES[name]
    expected = given if stated is None else stated[0]
    at_hand = conversations.start(begin)
    at_hand.record(lambda talk: talk.append_prompt("go"))
    ask(at_hand, {"type": "tool_use", "id": "one", "name": "bash", "input": {"x": given}})
    talk = reopened(conversations, at_hand.id)
    found = talk.messages()[1].content.blocks[0]["input"]["x"]
    sent = context(talk, talk.leaf)["messages"][1]["content"][0]["input"]["x"]

    assert repr(found) == repr(sent) == repr(expected)
    assert violations(context(talk, talk.leaf)) == []


def test_what_nests_too_deeply_is_cut_off_where_it_is_stated(conversations):
    at_hand = conversations.start(begin)
    at_hand.record(lambda talk: talk.append_prompt("go"))
    block = {"type": "tool_use", "id": "one", "name": "bash", "input": {"x": nested(3_000)}}
    ask(at_hand, block)
    talk = reopened(conversations, at_hand.id)
    depth, innermost = depth_of(talk.messages()[1].content.blocks[0]["input"]["x"])

    assert innermost == TOO_DEEP
    assert MAX_NESTING - 8 < depth <= MAX_NESTING


def test_ten_megabytes_in_one_line(conversations):
    """Case I1: one line of 10 MB with everything odd in it."""
    if "umadb" in type(conversations.recorder).__module__:
        pytest.skip("UmaDB takes events of up to 4 MB")
    piece = 'a\u2028b\0c\U0001d11e"\\\n' * 1000
    huge = piece * (10_000_000 // len(piece.encode()) + 1)
    at_hand = conversations.start(begin)
    at_hand.record(lambda talk: talk.append_prompt(huge))
    at_hand.record(lambda talk: talk.rename("after it"))
    talk = reopened(conversations, at_hand.id)

    assert len(huge.encode()) >= 10_000_000
    assert talk.messages()[0].content.text == huge
    assert talk.name == "after it"


def test_thinking_that_had_to_be_changed_is_not_sent_as_if_it_were_signed(conversations):
    """Case C2: it is byte-exact, or it is not sent."""
    at_hand = conversations.start(begin)
    at_hand.record(lambda talk: talk.append_prompt("go"))
    ask(
        at_hand,
        {"type": "thinking", "thinking": "a\u2028 e\u0301 \0", "signature": "s\u0301=="},
        {"type": "thinking", "thinking": "half \ud83d", "signature": "signed"},
        {"type": "text", "text": "done"},
    )
    talk = reopened(conversations, at_hand.id)
    content = context(talk, talk.leaf)["messages"][1]["content"]

    assert [block["type"] for block in content] == ["thinking", "text"]
    assert content[0] == {
        "type": "thinking",
        "thinking": "a\u2028 e\u0301 \0",
        "signature": "s\u0301==",
    }


def test_every_line_of_a_log_is_one_line_for_a_reader_that_knows_only_newlines(home):
    """Case E2: whatever the text, `grep`, `wc -l` and `jq` see one object a line."""
    with Conversations({"LEFTFOLD_DURABILITY": "os"}) as conversations:
        at_hand = conversations.start(begin)
        for given, _ in TEXTS.values():
            at_hand.record(lambda talk, given=given: talk.append_prompt(given + "."))
        data = conversations.store.path_of(at_hand.id).read_bytes()

    assert data.count(b"\n") == 1 + at_hand.conversation.version
    assert [json.loads(line)["v"] for line in data.split(b"\n")[1:-1]] == list(
        range(1, at_hand.conversation.version + 1)
    )
    data.decode("utf-8")


# -- the real program, in the poorest of locales ---------------------------------------------------

POOR = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_undecodable_bytes_in_arguments_input_and_tools_in_the_c_locale(tmp_path):
    """Cases E4, E7, Z12."""
    command = r"printf 'caf\351 \303\251 a\0b\342\200\250c'"
    script = [
        reply("Caf\u00e9 \U0001f600\u2028."),
        reply(call("bash", command=command, call_id="odd")),
        reply("Seen."),
        reply("Done."),
    ]
    with ScriptedServer(script) as server:
        program = Program(tmp_path, server, **POOR)
        first = program.run("-p", b"caf\xe9 \xc3\xa9".decode("utf-8", "surrogateescape"))
        second = program.run(
            "-c", "--yes", "-p", "-", stdin=b"na\xefve \xc3\xaf\xff \0 \xe2\x80\xa8!\n"
        )
        third = program.run(
            "-c", "-p", "and?", "--name", b"n\xe9".decode("utf-8", "surrogateescape")
        )
        assert [first.code, second.code, third.code] == [0, 0, 0]
        bodies = [request.json["messages"] for request in server.requests]

    found = events(program.log())
    assert said(found, "user") == [f"caf{BAD} \u00e9", f"na{BAD}ve \u00ef{BAD} \0 \u2028!", "and?"]
    assert said(found, "assistant")[0] == "Caf\u00e9 \U0001f600\u2028."
    # A NUL leaves no mark on a terminal.
    assert results(found) == {"odd": f"caf{BAD} \u00e9 ab\u2028c"}
    assert [event["state"]["name"] for event in found if event["topic"] == "Renamed"] == [f"n{BAD}"]
    assert bodies[0][0]["content"][0]["text"] == f"caf{BAD} \u00e9"
    for command in ("show", "log", "verify"):
        done = program.run(command, program.id())
        assert (done.code, done.err) == (0, ""), command
    assert program.run("list", "--all", "--json").objects[0]["title"] == f"n{BAD}"


def test_a_directory_whose_name_is_no_text(tmp_path):
    """Case E4: the directory is named in the log with U+FFFD, and tools still run in it."""
    with ScriptedServer(
        [reply(call("bash", command="touch here", call_id="t")), reply("Ok.")]
    ) as server:
        program = Program(tmp_path, server, **POOR)
        odd = program.cwd / b"d\xe9".decode("utf-8", "surrogateescape")
        odd.mkdir()
        program.cwd = odd
        done = program.run("-p", "go", "--yes")

    assert (done.code, done.out) == (0, "Ok.\n")
    until((odd / "here").exists)
    [started] = [event for event in events(program.log()) if event["topic"] == "Started"]
    assert started["state"]["cwd"].endswith(f"/d{BAD}")
