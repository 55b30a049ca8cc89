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
from domain.projections.context import CONTINUE, context
from infrastructure.mapper import ConversationMapper
from tests import builders as b
from tests.api_rules import prefix_violations, violations
from tests.strategies import TEXTS, json_objects

IDS = st.sampled_from(["a", "b", "a_2", "a.b", "a:b", "functions.bash:0", "toolu_1"])
mapper = ConversationMapper(JSONTranscoder())

answer_blocks = st.lists(
    st.one_of(
        TEXTS.map(b.text),
        st.builds(
            lambda i, n, x: {**b.tool_use(i, n), "input": x},
            IDS,
            st.sampled_from(["bash", "a b"]),
            json_objects,
        ),
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

    def ask(self):
        """Make the request, as the agent does, and check it."""
        request = context(self.talk, self.talk.leaf)
        facts = (self.talk.model, self.talk.instructions)
        assert violations(request) == []
        self.check_prefix(request, facts)
        self.requests[self.talk.leaf] = (request, facts)
        return request, self.talk.version

    def check_prefix(self, request, facts):
        for entry in reversed(self.talk.path(self.talk.leaf)):
            if entry.originator_version in self.requests:
                previous, then = self.requests[entry.originator_version]
                if then == facts:
                    assert prefix_violations(previous, request) == []
                return
            if isinstance(entry, Compacted):
                return

    @precondition(lambda self: self.users_turn())
    @rule(
        content=answer_blocks, stop_reason=st.sampled_from(["end_turn", "tool_use", "max_tokens"])
    )
    def answer(self, content, stop_reason):
        request, version = self.ask()
        self.talk.append_answer(
            content, stop_reason=stop_reason, usage={"input_tokens": 3},
            request_digest=digest(request), request_version=version,
        )  # fmt: skip
        self.save()

    @precondition(lambda self: self.users_turn())
    @rule(
        kept=st.lists(TEXTS.map(b.text), max_size=1),
        outcome=st.sampled_from(["interrupted", "failed"]),
    )
    def cut_short(self, kept, outcome):
        request, version = self.ask()
        if kept and kept[0]["text"].strip():
            self.talk.append_answer(
                kept, stop_reason=outcome, request_digest=digest(request), request_version=version
            )
        self.talk.end_turn(outcome, error=TurnError("error", "it \ud83d broke"))
        self.save()

    def users_turn(self):
        """Whether there is something to answer: no open call, and the user has the last word."""
        last = context(self.talk, self.talk.leaf)["messages"][-1]["content"]
        return last != [b.text(CONTINUE)] and not self.talk.open_calls()

    @precondition(lambda self: self.talk.open_calls())
    @rule(data=st.data())
    def start_tool(self, data):
        self.talk.start_tool(data.draw(st.sampled_from(self.talk.open_calls())).id)
        self.save()

    @precondition(lambda self: self.talk.open_calls())
    @rule(data=st.data(), output=outputs, is_error=st.booleans())
    def end_tool(self, data, output, is_error):
        call = data.draw(st.sampled_from(self.talk.open_calls()))
        self.talk.append_tool_result(call.id, output, is_error=is_error)
        self.save()

    @rule()
    def close(self):
        self.talk.close_open_calls()
        self.talk.end_turn("interrupted")
        self.save()

    @rule()
    def crash(self):
        self.talk = self.replayed()
        self.talk.clock = b.Clock(self.talk.modified_on)

    @rule(command=st.sampled_from(["model", "other model", "thinking", "instructions", "name"]))
    def change(self, command):
        match command:
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

    @rule(data=st.data())
    def move(self, data):
        self.talk.move_leaf(data.draw(st.sampled_from([None, *self.talk.entries])))
        self.save()

    @precondition(lambda self: self.talk.leaf is not None)
    @rule(data=st.data())
    def leave_branch(self, data):
        self.talk.leave_branch(data.draw(st.sampled_from([None, *self.talk.entries])), "a try")
        self.save()

    @precondition(lambda self: self.talk.leaf is not None)
    @rule(data=st.data())
    def compact(self, data):
        path = [entry.originator_version for entry in self.talk.path(self.talk.leaf)]
        kept = data.draw(st.sampled_from([None, *path]))
        self.talk.compact("the past", first_kept=kept, tokens_before=9, reason="full")
        self.save()

    @rule(content=TEXTS, visible=st.booleans())
    def note(self, content, visible):
        self.talk.append_note("shell", content, visible=visible)
        self.save()

    @rule(said=TEXTS.filter(str.strip))
    def queue(self, said):
        self.talk.queue_prompt(said)
        self.save()

    @precondition(lambda self: self.talk.queue)
    @rule()
    def deliver(self):
        target, said = next(iter(self.talk.queue.items()))
        self.talk.withdraw_prompt(target)
        self.talk.close_open_calls()
        self.talk.append_prompt(said)
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


Histories.TestCase.settings = settings(max_examples=100, stateful_step_count=25)


class TestEveryHistoryExtendsItsPrefixReplaysAndCanBeRebuilt(Histories.TestCase):
    """Prefix extension, live state = replayed state, and every request digest reproducible."""
