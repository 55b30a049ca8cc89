"""Every context that a test makes is made both ways: spliced from the log, and decoded throughout.

They have to be the same, as values; and what is spliced has to be JSON for every strict parser.
Whatever is told by columns that were kept has to be what the lines themselves tell.
"""

import json
from itertools import starmap

import msgspec

from domain.plain import THINKS
from domain.projections.message_builder import MessageBuilder
from domain.unread import Run
from infrastructure.columns import Columns


class Decoding(MessageBuilder):
    """Passes on no message as it stands in the log."""

    def _add_run(self, run):
        for version in run.versions:
            self._add_decoded(run.unread.read(version))


def compare(monkeypatch):
    """Compare whatever a context is made of."""
    compare_builders(monkeypatch)
    compare_columns(monkeypatch)


def compare_columns(monkeypatch):
    """Read lines themselves whenever their columns are believed."""
    told_of = Columns.told

    def told_both_ways(self, originator_id, data, events):
        told = told_of(self, originator_id, data, events)
        if told is None:
            return None
        told = list(told)
        block = events.decoder.decode(data, len(data), self.start)
        assert all(starmap(_same, zip(told, events._of_block(originator_id, block), strict=True)))
        return told

    monkeypatch.setattr(Columns, "told", told_both_ways)


def _same(kept, read):
    if not isinstance(kept, Run):
        return kept == read
    one, other = kept.unread, read.unread
    kinds, size = one.shapes.kinds, len(one.versions)
    plain = [place for place in range(size) if kinds[place]]
    thinking = [place for place in plain if kinds[place] & THINKS]
    assert (kept.first, kept.after) == (read.first, read.after)
    assert (one.versions, one.parents, one.shapes) == (other.versions, other.parents, other.shapes)
    parts, others = one.parts(0, size), other.parts(0, size)
    assert [parts[place] for place in plain] == [others[place] for place in plain]
    assert [one.models[each] for each in thinking] == [other.models[each] for each in thinking]
    return one.read(kept.last_version) == other.read(kept.last_version)


def compare_builders(monkeypatch):
    """Give each builder of messages a witness that decodes, and compare after each step."""
    begin, add, last_message = (
        MessageBuilder.__init__, MessageBuilder.add, MessageBuilder.last_message,
    )  # fmt: skip

    def begin_both(self, *arguments):
        begin(self, *arguments)
        if type(self) is MessageBuilder:
            self.witness, self.is_adding = Decoding(*arguments), False
            self.seen = self.witness.seen = 0

    def add_both(self, entry):
        self.is_adding = True  # of a run, the witness has nothing yet
        add(self, entry)
        if type(self) is MessageBuilder:
            self.is_adding = False
            self.witness.add(entry)
            _agree(_news_of(self), _news_of(self.witness))
            for name in ("presumed", "may_think"):
                assert getattr(self, name) == getattr(self.witness, name)

    def last_of_both(self, **wanted):
        message = last_message(self, **wanted)
        if type(self) is MessageBuilder and not self.is_adding:
            _agree(message, self.witness.last_message(**wanted))
        return message

    monkeypatch.setattr(MessageBuilder, "__init__", begin_both)
    monkeypatch.setattr(MessageBuilder, "add", add_both)
    monkeypatch.setattr(MessageBuilder, "last_message", last_of_both)


def _news_of(builder):
    """Return the messages that are new since the last time, as a list in JSON."""
    pieces, builder.seen = builder.pieces[builder.seen :], len(builder.pieces)
    return b"[%b]" % b"".join(pieces)[:-1]


def _agree(spliced, decoded):
    # repr, because the order of keys counts, and 1 is not 1.0.
    assert repr(_strictly(spliced)) == repr(msgspec.json.decode(decoded))


def _strictly(raw):
    """Return the value of the JSON *raw*, which every parser reads in the same way."""
    text = str(raw, "utf-8")
    assert "\n" not in text
    value = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refused)
    assert repr(value) == repr(msgspec.json.decode(raw))
    return value


def _without_repeats(pairs):
    value = dict(pairs)
    assert len(value) == len(pairs), f"a repeated key: {pairs}"
    return value


def _refused(constant):
    raise AssertionError(f"{constant} is no JSON")
