"""Histories as the agent makes them, by commands, crashes included: what a cache and an audit need.

The machine plays the agent: it sends a request only when it is the user's turn and no call is
open. Every request is kept under the leaf it was made for; what is replayed are the mapper's stored
events.
"""

import hypothesis.strategies as st
from eventsourcing.persistence import JSONTranscoder
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from domain.canonical import digest
from domain.conversation import Conversation
from domain.events import Compacted, MessageAppended, TurnError
from domain.projections.context import context
from domain.projections.pairing import CONTINUE
from infrastructure.mapper import ConversationMapper
from tests import builders as b
from tests.api_rules import prefix_violations, violations
from tests.strategies import TEXTS, json_objects

IDS = st.sampled_from(["a", "b", "a_2", "a.b", "a:b", "functions.bash:0", "toolu_1"])
mapper = ConversationMapper(JSONTranscoder())

calls = st.builds(
    lambda call_id, name, x: {**b.tool_use(call_id, name), "input": x},
    IDS,
    st.sampled_from(["bash", "a b"]),
    json_objects,
)
answer_blocks = st.lists(
    st.one_of(
        calls,
        calls,
        calls,
        TEXTS.map(b.text),
        st.builds(b.thinking, TEXTS, st.sampled_from(["signed", "signed", ""])),
        st.just(b.redacted()),
        st.just({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
    ),
    max_size=4,
)
outputs = st.one_of(TEXTS, st.lists(st.one_of(TEXTS.map(b.text), st.just(b.image())), max_size=2))


class Histories(RuleBasedStateMachine):
    """One conversation, from its start to wherever the rules lead."""

    @initialize()
    def start(self):
        self.talk = b.new_conversation()
        self.stored = []
        self.requests = {}  # leaf -> (the request made for it, the model and instructions then)
        self.save()

    def save(self):
        for event in self.talk.collect_events():
            self.stored.append(mapper.to_domain_event(mapper.to_stored_event(event)))

    def replayed(self, version=None):
        return Conversation.replay(None, self.stored[:version])

    # -- what the agent does -----------------------------------------------------------------------

    @rule(said=TEXTS.filter(str.strip))
    def prompt(self, said):
        self.talk.close_open_calls()
        self.talk.append_prompt(said)
        self.save()

    @rule(
        content=answer_blocks, stop_reason=st.sampled_from(["end_turn", "tool_use", "max_tokens"])
    )
    def answer(self, content, stop_reason):
        request, version = self.ask()
        self.talk.append_answer(
            content,
            stop_reason=stop_reason,
            usage={"input_tokens": 3},
            request_digest=digest(request),
            request_version=version,
        )
        self.save()

    @rule(
        ids=st.lists(IDS, min_size=2, max_size=3, unique=True),
        thought=st.lists(st.just(b.thinking("hm")), max_size=1),
        data=st.data(),
    )
    def tool_round(self, ids, thought, data):
        """An answer with several calls, whose results come in any order."""
        self.answer([*thought, *map(b.tool_use, ids)], "tool_use")
        for call_id in data.draw(st.permutations(ids)):
            self.talk.start_tool(call_id)
            self.talk.append_tool_result(call_id, f"<{call_id}>")
            self.save()

    @rule(kept=TEXTS, outcome=st.sampled_from(["interrupted", "failed"]))
    def cut_short(self, kept, outcome):
        request, version = self.ask()
        if kept.strip():
            self.talk.append_answer(
                [b.text(kept)],
                stop_reason=outcome,
                request_digest=digest(request),
                request_version=version,
            )
        self.talk.end_turn(outcome, error=TurnError("error", "it \ud83d broke"))
        self.save()

    def ask(self):
        """Make the request, as the agent does, and check it."""
        if not self.users_turn():
            self.prompt("go on")
        request = context(self.talk, self.talk.leaf)
        facts = (self.talk.model, self.talk.instructions)
        assert violations(request) == []
        self.check_prefix(request, facts)
        self.requests[self.talk.leaf] = (request, facts)
        return request, self.talk.version

    def users_turn(self):
        """Whether there is something to answer: no open call, and the user has the last word."""
        last = context(self.talk, self.talk.leaf)["messages"][-1]["content"]
        return last != [b.text(CONTINUE)] and not self.talk.open_calls()

    def check_prefix(self, request, facts):
        """Compare with the newest request of this branch, unless something came in between."""
        for entry in reversed(self.talk.path(self.talk.leaf)):
            if entry.originator_version in self.requests:
                previous, then = self.requests[entry.originator_version]
                if then == facts:
                    assert prefix_violations(previous, request) == []
                return
            if isinstance(entry, Compacted):
                return

    @precondition(lambda self: self.talk.open_calls())
    @rule(data=st.data(), output=outputs, is_error=st.booleans(), how=st.sampled_from("sse"))
    def run_tool(self, data, output, is_error, how):
        """Start a tool (s), or let one end (e), in any order."""
        call = data.draw(st.sampled_from(self.talk.open_calls()))
        if how == "s":
            self.talk.start_tool(call.id)
        else:
            self.talk.append_tool_result(call.id, output, is_error=is_error)
        self.save()

    @rule(said=TEXTS.filter(str.strip), how=st.sampled_from(["close", "note", "hidden", "queue"]))
    def aside(self, said, how):
        match how:
            case "close":
                self.talk.close_open_calls()
                self.talk.end_turn("interrupted")
            case "note" | "hidden":
                self.talk.append_note("shell", said, visible=how == "note")
            case "queue":
                self.talk.queue_prompt(said)
                target, said = next(iter(self.talk.queue.items()))
                self.talk.withdraw_prompt(target)
                self.prompt(said)
        self.save()

    @rule()
    def crash(self):
        self.talk = self.replayed()
        self.talk.clock = b.Clock(self.talk.modified_on)

    @rule(what=st.sampled_from(["model", "other model", "thinking", "instructions", "name"]))
    def change(self, what):
        match what:
            case "model":
                self.talk.change_model(b.MODEL, max_tokens=1000)
            case "other model":
                self.talk.change_model("claude-opus-4-6", max_tokens=99, caching=True)
            case "thinking":
                self.talk.change_thinking_level("high")
            case "instructions":
                self.talk.change_instructions("Now be long.", [])
            case "name":
                self.talk.rename("a \ud83d name")
        self.save()

    @precondition(lambda self: self.talk.leaf is not None)
    @rule(data=st.data(), how=st.sampled_from(["move", "move", "leave", "compact"]))
    def jump(self, data, how):
        path = [entry.originator_version for entry in self.talk.path(self.talk.leaf)]
        chosen = path if how == "compact" else self.talk.entries
        target = data.draw(st.sampled_from([None, *chosen]))
        match how:
            case "move":
                self.talk.move_leaf(target)
            case "leave":
                self.talk.leave_branch(target, "a try")
            case "compact":
                self.talk.compact("the past", first_kept=target, tokens_before=9, reason="full")
        self.save()

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def live_state_is_replayed_state(self):
        if hasattr(self, "talk"):
            assert b.state(self.talk) == b.state(self.replayed())

    @invariant()
    def the_newest_request_can_be_rebuilt(self):
        if hasattr(self, "talk") and isinstance(
            entry := self.talk.entries.get(self.talk.leaf), MessageAppended
        ):
            self.rebuild(entry)

    def rebuild(self, entry):
        if entry.request_digest is not None:
            request = context(self.replayed(entry.request_version), entry.parent)
            assert digest(request) == entry.request_digest

    def teardown(self):
        for entry in self.talk.entries.values() if hasattr(self, "talk") else ():
            if isinstance(entry, MessageAppended):
                self.rebuild(entry)


Histories.TestCase.settings = settings(max_examples=150, stateful_step_count=25)


class TestEveryHistoryExtendsItsPrefixReplaysAndCanBeRebuilt(Histories.TestCase):
    """Prefix extension, live state = replayed state, and every request digest reproducible."""
