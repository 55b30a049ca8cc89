"""Histories as the agent makes them, by commands, crashes included: what a cache and an audit need.

The machine plays the agent: it sends a request only when it is the user's turn and no call is
open. Every request is kept under the leaf it was made for; what is replayed are the mapper's stored
events.
"""

import hmac

import hypothesis.strategies as st
from eventsourcing.persistence import JSONTranscoder
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from domain.conversation import Conversation
from domain.events import Compacted, MessageAppended, SummaryRequests, SummaryStep, TurnError
from domain.projections.compaction import find_cut
from domain.projections.context import PROJECTION, context, request_of, seen
from domain.projections.message_builder import CONTINUE
from domain.projections.proofs import proofs
from domain.projections.summaries import Subject, summary_requests
from infrastructure.mapper import ConversationMapper
from tests import builders as b
from tests.api_rules import prefix_violations, violations
from tests.levels import examples
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


class Seals:
    """Seals made with a key."""

    def __init__(self, key):
        self.key = key

    def seal(self, vouched_for):
        return hmac.digest(self.key, vouched_for, "sha256").hex()

    def agrees(self, vouched_for, seal):
        return seal == self.seal(vouched_for)


OURS, OTHERS = Seals(b"ours"), Seals(b"others")


class Histories(RuleBasedStateMachine):
    """One conversation, from its start to wherever the rules lead."""

    @initialize()
    def start(self):
        self.talk = b.new_conversation(seals=OURS)
        self.stored = []
        self.requests = {}  # leaf -> (the request made for it, the model and instructions then)
        self.save()

    def save(self):
        for event in self.talk.collect_events():
            self.stored.append(mapper.to_domain_event(mapper.to_stored_event(event)))

    def replayed(self, version=None, seals=OURS):
        talk = Conversation.replay(None, self.stored[:version])
        talk.seals = seals
        return talk

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
            request_digest=request.digest(),
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
                request_digest=request.digest(),
                request_version=version,
            )
        self.talk.end_turn(outcome, error=TurnError("error", "it \ud83d broke"))
        self.save()

    def ask(self):
        """Make the request, as the agent does, and check it."""
        if not self.users_turn():
            self.prompt("go on")
        request = request_of(self.talk, self.talk.leaf)
        facts = (self.talk.model, self.talk.instructions, set(self.talk.withheld))
        assert violations(request.content) == []
        self.check_prefix(request.content, facts)
        self.requests[self.talk.leaf] = (request.content, facts)
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
    @rule(data=st.data(), output=outputs, is_error=st.booleans(), how=st.sampled_from("asse"))
    def run_tool(self, data, output, is_error, how):
        """Allow a tool always (a), start one (s), or let one end (e), in any order."""
        call = data.draw(st.sampled_from(self.talk.open_calls()))
        match how:
            case "a":
                self.talk.decide(call, "always", command="make", cwd="/work")
            case "s":
                self.talk.start_tool(call.id)
            case "e":
                files = data.draw(st.dictionaries(st.sampled_from(["/a", "/\ud83d"]), TEXTS))
                self.talk.append_tool_result(call.id, output, is_error=is_error, seen=files)
        self.save()

    @rule(
        said=TEXTS.filter(str.strip),
        how=st.sampled_from(["close", "note", "hidden", "queue", "deliver", "take back"]),
    )
    def aside(self, said, how):
        match how:
            case "close":
                self.talk.close_open_calls()
                self.talk.end_turn("interrupted")
            case "note" | "hidden":
                self.talk.append_note("shell", said, visible=how == "note")
            case "queue":
                self.talk.queue_prompt(said)
            case "deliver":
                self.talk.close_open_calls()
                self.talk.deliver_prompts({})
            case "take back":
                for target in list(self.talk.queue)[:1]:
                    self.talk.withdraw_prompt(target)
        self.save()

    @rule()
    def crash(self):
        self.talk = self.replayed()
        self.talk.clock = b.Clock(self.talk.modified_on)

    @rule(
        what=st.sampled_from(
            ["model", "other model", "thinking", "instructions", "name", "limits"]
        ),
        tokens=st.none() | st.integers(-1, 9_000),
    )
    def change(self, what, tokens):
        match what:
            case "limits":
                self.talk.learn_limits(
                    self.talk.model, context_window=tokens, max_tokens=tokens and tokens // 4
                )
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

    @precondition(lambda self: self.talk.leaf is not None)
    @rule(data=st.data(), kinds=st.sets(st.sampled_from(["image", "thinking", "text", "x"])))
    def withhold(self, data, kinds):
        targets = data.draw(st.lists(st.sampled_from(list(self.talk.entries)), max_size=3))
        self.talk.withhold(targets, sorted(kinds), reason="no \ud83d")
        self.save()

    @precondition(lambda self: self.talk.leaf is not None)
    @rule(
        data=st.data(),
        how=st.fixed_dictionaries(
            {"window": st.sampled_from([1_000, 200_000]), "focus": TEXTS, "is_whole": st.booleans()}
        ),
        keep=st.sampled_from([1, 100]),
        is_moved=st.booleans(),
    )
    def compact_as_asked(self, data, how, keep, is_moved):
        """Ask for a summary; another program may move the leaf before it is recorded."""
        cut = find_cut(self.talk, keep)
        if cut is None:
            return
        asked = self.asked(Subject.of_cut(cut), **how)
        if is_moved:
            self.talk.move_leaf(data.draw(st.sampled_from([None, *self.talk.entries])))
        self.talk.compact(
            "the past", first_kept=cut.first_kept, tokens_before=9, reason="full", asked=asked
        )
        self.save()

    @precondition(lambda self: self.talk.leaf is not None)
    @rule(data=st.data(), is_whole=st.booleans())
    def leave_as_asked(self, data, is_whole):
        path = self.talk.path(self.talk.leaf)
        at = data.draw(st.integers(0, len(path) - 1))
        target = path[at - 1].originator_version if at else None
        asked = self.asked(Subject.of_branch(path[at:]), is_whole=is_whole)
        self.talk.leave_branch(target, "a try", asked=asked)
        self.save()

    def asked(self, subject, *, window=200_000, focus="", is_whole):
        """Ask for a summary, as the agent does; return what it was asked with."""
        leaf, steps = self.talk.leaf, []
        requests = summary_requests(
            self.talk, leaf, subject, window=window, focus=focus, is_whole=is_whole
        )
        request = next(requests, None)
        while request is not None:
            body = request.content
            assert violations(body) == []
            assert "Use exactly these headings" in body["messages"][-1]["content"][-1]["text"]
            steps.append(SummaryStep(request.digest(), f"part {len(steps)}"))
            try:
                request = requests.send(steps[-1].answer)
            except StopIteration:
                break
        return SummaryRequests(
            version=self.talk.version, leaf=leaf, window=window, projection=PROJECTION,
            steps=tuple(steps), focus=focus, is_whole=is_whole,
        )  # fmt: skip

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def live_state_is_replayed_state(self):
        if hasattr(self, "talk"):
            again = self.replayed()
            assert b.state(self.talk) == b.state(again)
            assert seen(self.talk, self.talk.leaf) == seen(again, again.leaf)

    @invariant()
    def what_was_recorded_here_counts_here_and_nowhere_else(self):
        if hasattr(self, "talk"):
            ours, theirs = self.replayed(), self.replayed(seals=OTHERS)
            assert ours.queue == theirs.held_back == self.talk.queue
            assert theirs.queue == ours.held_back == {}
            assert (ours.allowed_elsewhere(), theirs.allowed_elsewhere()) == ([], ours.allowed)
            assert (ours.works_here(), theirs.works_here()) == (True, False)
            assert ours.has_own_calls() or not ours.open_calls()
            assert not theirs.has_own_calls()

    @invariant()
    def the_newest_request_can_be_rebuilt(self):
        if hasattr(self, "talk") and isinstance(
            entry := self.talk.entries.get(self.talk.leaf), MessageAppended
        ):
            self.rebuild(entry)

    def rebuild(self, entry):
        if entry.request_digest is not None:
            request = request_of(self.replayed(entry.request_version), entry.parent)
            assert request.digest() == entry.request_digest

    def teardown(self):
        for entry in self.talk.entries.values() if hasattr(self, "talk") else ():
            if isinstance(entry, MessageAppended):
                self.rebuild(entry)
        assert all(proof.holds for proof in proofs(self.stored if hasattr(self, "talk") else []))


Histories.TestCase.settings = settings(max_examples=examples(150), stateful_step_count=25)


class TestEveryHistoryExtendsItsPrefixReplaysAndCanBeRebuilt(Histories.TestCase):
    """Prefix extension, live state = replayed state, and every request digest reproducible."""
