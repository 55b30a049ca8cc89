"""Hypothesis strategies: streams of events as no sane program writes them, and as ours does.

`streams()` interleaves every event in any order, with any parent, with lost and doubled versions,
and with messages of any shape. All of it is what a log may hold after damage, hand edits, imports
and versions of this program that do not exist yet.
"""

import json

import msgspec
from hypothesis import strategies as st

from domain import events
from tests import builders as b

CALL_IDS = st.sampled_from(
    ["a", "b", "a_2", "a.b", "a:b", "a_b", "functions.bash:0", "", " ", "é", "x" * 200, "call_1"]
)
WORDS = st.sampled_from(
    ["", " ", "\n\n", "\u2028", "hi", "a\u2028b\x85c\x0cd\x1ce", "\0", "𝄞", "é"]
)
TEXTS = st.one_of(WORDS, st.text(max_size=6))
MODELS = st.sampled_from([b.MODEL, "claude-opus-4-6", "", " "])


def _one_of_these(*strategies):
    return st.sampled_from(strategies).flatmap(lambda strategy: strategy)


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
json_values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "type", "_type_", "_data_", "text", "é"]), inner)
    ),
    max_leaves=6,
)
json_objects = st.dictionaries(
    st.sampled_from(["a", "command", "_type_", "_data_", "cache_control"]), json_values, max_size=3
)

# -- blocks --------------------------------------------------------------------------------------

_extras = st.sampled_from(
    [{}, {}, {}, {"cache_control": {"type": "ephemeral"}}, {"citations": None}, {"extra": 1}]
)
_result_parts = st.one_of(
    TEXTS.map(b.text),
    st.just(b.image()),
    st.just(b.image(data="???")),
    st.just(b.image(media_type="image/tiff")),
    json_values,
)
_results = st.builds(
    lambda call_id, content, more: b.tool_result(call_id, content, **more),
    CALL_IDS,
    st.one_of(TEXTS, st.lists(_result_parts, max_size=3), json_values),
    st.sampled_from(
        [{}, {"is_error": True}, {"is_error": False}, {"is_error": None}, {"is_error": "x"}]
    ),
)
_calls = st.builds(
    lambda call_id, name, arguments, more: {
        "type": "tool_use", "id": call_id, "name": name, "input": arguments, **more
    },
    CALL_IDS,
    st.sampled_from(["bash", "read", "a b", "", "x" * 200, "é"]),
    json_objects,
    st.sampled_from([{}, {"caller": None}, {"caller": {"type": "direct"}}]),
)  # fmt: skip
_texts = st.builds(lambda said, more: b.text(said, **more), TEXTS, _extras)
_thinking = st.builds(
    lambda thought, signature, more: b.thinking(thought, signature, **more),
    TEXTS,
    st.sampled_from(["signed", "", None, 3]),
    _extras,
)
_redacted = st.builds(b.redacted, st.sampled_from(["opaque", "", None]))
_newer = st.builds(
    lambda kind, more: {"type": kind, **more},
    st.sampled_from(["server_tool_use", "mcp_tool_use", "hologram", ""]),
    st.dictionaries(st.sampled_from(["id", "data"]), st.text(max_size=3), max_size=2),
)
_odd_type = st.builds(lambda kind: {"type": kind, "text": "x"}, st.one_of(st.none(), st.integers()))
_wrong_shape = st.sampled_from(
    [
        {"type": "text"}, {"type": "text", "text": None}, {"type": "text", "text": ["x"]},
        {"type": "tool_use", "id": 1, "name": "bash", "input": {}},
        {"type": "tool_use", "id": "a", "name": None, "input": {}},
        {"type": "tool_use", "id": "a", "name": "bash", "input": [1]},
        {"type": "tool_use", "id": "a", "name": "bash"},
        {"type": "tool_result"}, {"type": "tool_result", "tool_use_id": None},
        {"type": "image"}, {"type": "image", "source": "x"},
        {"type": "image", "source": {"type": "url", "url": "nowhere"}},
        {"type": "document", "source": {"type": "text", "data": " "}},
        {"type": "document", "title": None, "source": {"type": "text", "data": "page"}},
        {"type": "thinking"}, {"type": "redacted_thinking"}, {},
    ]
)  # fmt: skip

# Blocks as servers send them that only resemble the API: any field may be of any type, or missing.
_FIELDS = {
    "text": {"text": "x", "citations": [{"type": "page_location"}]},
    "thinking": {"thinking": "hm", "signature": "signed"},
    "redacted_thinking": {"data": "opaque"},
    "tool_use": {"id": "a", "name": "bash", "input": {}, "caller": {"type": "direct"}},
    "server_tool_use": {"id": "s", "name": "web_search", "input": {}},
    "web_search_tool_result": {"tool_use_id": "s", "content": []},
    "image": {"source": b.image()["source"]},
    "document": {"source": {"type": "text", "media_type": "text/plain", "data": "page"}},
}


@st.composite
def odd_blocks(draw):
    """A block of a known type, one field of which came as anything, or not at all."""
    kind = draw(st.sampled_from(sorted(_FIELDS)))
    block = {"type": kind, **_FIELDS[kind]}
    field = draw(st.sampled_from(sorted(_FIELDS[kind])))
    if draw(st.booleans()):
        return block | {field: draw(json_values)}
    return {key: value for key, value in block.items() if key != field}


assistant_blocks = st.one_of(
    odd_blocks(), _texts, _calls, _calls, _thinking, _redacted, _newer, _results, _odd_type, _wrong_shape,
    st.just(b.image()), json_values,
)  # fmt: skip
user_blocks = st.one_of(
    odd_blocks(), _texts, _results, _results, _newer, _calls, _thinking, _odd_type, _wrong_shape,
    st.just(b.image()), json_values,
)  # fmt: skip

# -- messages ------------------------------------------------------------------------------------

_unreadable = st.sampled_from(
    [
        b"null", b"[]", b"3", b'"x"', b"{}", b'{"role":null}', b'{"role":"tool","content":"x"}',
        b'{"role":"user","content":null}', b'{"role":"assistant","content":3}',
        b'{"role":"user","content":{"type":"text","text":"x"}}', b'{"role":"user"}',
        b'{"role":"user","content":"\xff"}', b'{"role":"user","content":[1e999]}',
        rb'{"role":"assistant","content":[{"type":"text","text":"\ud83d"}]}',
        b'{"role":"user","content":' + b"[" * 300 + b"]" * 300 + b"}",
    ]
).map(msgspec.Raw)  # fmt: skip


def _messages(parents):
    more = st.fixed_dictionaries(
        {
            "model": st.one_of(st.none(), MODELS),
            "stop_reason": st.sampled_from(["end_turn", "tool_use", "interrupted", "failed", None]),
            "usage": st.sampled_from([None, {}, {"input_tokens": 3}, {"input_tokens": "many"}]),
        }
    )
    body = st.one_of(
        st.builds(_body, st.just("assistant"), _contents(assistant_blocks)),
        st.builds(_body, st.just("assistant"), _contents(assistant_blocks)),
        st.builds(_body, st.just("user"), _contents(user_blocks)),
        st.builds(_body, st.just("user"), _contents(user_blocks)),
        st.builds(_body, st.sampled_from(["system", "tool", "", None]), _contents(user_blocks)),
        _unreadable,
    )
    return st.builds(
        lambda body, parent, m: b.message(body, parent=parent, **m), body, parents, more
    )


def _contents(blocks):
    some = st.lists(blocks, min_size=1, max_size=4)
    return _one_of_these(some, some, some, st.just([]), TEXTS)


def _body(role, content):
    return {"role": role, "content": content}


KINDS = st.sampled_from(
    ["image", "document", "thinking", "redacted_thinking", "server_tool_use", "hologram", "text",
     "tool_use", "tool_result", ""]
)  # fmt: skip

# -- events --------------------------------------------------------------------------------------

versions = st.integers(-1, 20)
"""Versions of something: of an entry, of a fact, of what was lost, or of what never was."""

parents = st.one_of(st.just(b.PREVIOUS), st.just(b.PREVIOUS), st.none(), versions)
_odd_tools = st.sampled_from(
    [
        [b.BASH], [b.BASH, b.BASH], [], None, {"a": 1}, "x", [3], [{}], [{"name": "a b"}],
        [b.BASH, {"name": "x", "input_schema": None}], [{**b.BASH, "description": None}],
        [{**b.BASH, "cache_control": {"type": "ephemeral"}}], [{"type": "bash_20250124", "name": "bash"}],
    ]
)  # fmt: skip


def any_event(parent=parents):
    """One event of any class, with no version yet; six of ten are messages."""
    summaries = st.one_of(
        st.builds(
            lambda s, k, p: b.compacted(s, first_kept=k, parent=p),
            TEXTS,
            st.none() | versions,
            parent,
        ),
        st.builds(
            lambda s, n, p: b.branch_summarized(s, left=n, parent=p), TEXTS, versions, parent
        ),
        st.builds(lambda s, v, p: b.note(s, visible=v, parent=p), TEXTS, st.booleans(), parent),
    )
    # Not `one_of`, which would flatten the many kinds of facts into the few of entries.
    return _one_of_these(*[_messages(parent)] * 6, summaries, facts, facts, facts)


facts = st.one_of(
    st.builds(b.tool_started, CALL_IDS),
    st.builds(
        lambda i, d, c: b.approved(i, d, command=c),
        CALL_IDS,
        st.sampled_from(["yes", "always", "no", "?"]),
        st.none() | TEXTS,
    ),
    st.builds(b.moved, st.none() | versions),
    st.builds(b.turn_ended, st.sampled_from(["done", "interrupted", "failed", "?"])),
    st.builds(b.started, TEXTS),
    st.builds(b.forked, versions),
    st.builds(
        lambda m, n, c: b.model(m, n, caching=c), MODELS, st.integers(-1, 10**6), st.booleans()
    ),
    st.builds(
        lambda m, w, n: b.learned(m, context_window=w, max_tokens=n),
        MODELS,
        st.none() | st.integers(-1, 10**5),
        st.none() | st.integers(-1, 10**5),
    ),
    st.builds(b.withheld, st.lists(versions, max_size=9), st.lists(KINDS, max_size=3)),
    st.builds(b.thinking_level, st.sampled_from(["off", "low", "max", "", "banana"])),
    st.builds(b.instructions, TEXTS, _odd_tools),
    st.builds(b.queued, TEXTS),
    st.builds(b.withdrawn, versions),
    st.builds(b.labelled, versions, st.none() | TEXTS),
    st.builds(b.renamed, st.none() | TEXTS),
    st.builds(b.archived, st.booleans()),
    st.builds(b.unrecognised, st.sampled_from(["Newer", "MessageAppended"])),
)


@st.composite
def _tool_rounds(draw):
    """An answer with some calls, and results for most of them, in any order, some twice."""
    ids = draw(st.lists(CALL_IDS, min_size=1, max_size=3))
    answer = b.assistant(*map(b.tool_use, ids), stop_reason="tool_use")
    answered = draw(st.lists(st.sampled_from(ids), max_size=4))
    asides = draw(st.lists(st.one_of(any_event(), st.builds(b.tool_started, CALL_IDS)), max_size=2))
    return [answer, *draw(st.permutations([*(b.result(i, f"<{i}>") for i in answered), *asides]))]


_fragments = _one_of_these(any_event().map(lambda event: [event]), _tool_rounds())


@st.composite
def streams(draw, max_size=8):
    """A log: events in any order; versions that are lost, doubled, or begin late."""
    length = draw(st.sampled_from([0, 1, 2, 4, 6, max_size]))
    parts = draw(st.lists(_fragments, min_size=length, max_size=length))
    drawn = [event for part in parts for event in part]
    version, entry, stream = draw(st.sampled_from([0, 0, 0, 1, 5])), None, []
    for event in drawn:
        version = max(1, version + draw(st.sampled_from([1] * 8 + [0, 2, 4])))
        changes = {"originator_version": version}
        if isinstance(event, events.Entry):
            if event.parent == b.PREVIOUS:
                changes["parent"] = entry
            entry = version
        stream.append(msgspec.structs.replace(event, **changes))
    return stream


def leaf_of(draw, talk):
    """Any leaf that a request can be asked for."""
    return draw(st.sampled_from([None, *talk.entries]))


def json_text(value):
    """*value* as JSON of the standard library, which writes what no strict parser reads."""
    return json.dumps(value).encode()
