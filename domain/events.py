"""Every event of a conversation: names, data and defaults. Nothing here decides.

Events are light and frozen (msgspec structs). The bodies that can be large (messages, tool
definitions) stay undecoded JSON until they are read: replaying a log costs what parsing its
structure costs.

Annotations are values in this module: msgspec reads them when a log is opened, and takes three
milliseconds for what is text.

Topics are short stable names. `TOPICS` is closed: only these are ever resolved (design, section 3).
"""

from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, TypeAlias
from uuid import UUID

import msgspec
from eventsourcing.domain import CanCreateTimestamp

from domain.messages import ROLES, JsonObject, MessageContent, blocks_of
from domain.text import decoded

if TYPE_CHECKING:
    from domain.conversation import Conversation

Version: TypeAlias = int

UNSET_ID = UUID(int=0)
"""The originator of an event that has none yet: the mapper sets it."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One fact of a conversation. It refers to nothing that could refer to it."""

    TOPIC: ClassVar[str]
    class_version: ClassVar[int] = 1

    originator_id: UUID = UNSET_ID
    originator_version: Version = 0
    timestamp: datetime
    written_as: int = msgspec.field(name="class_version", default=1)
    """Of which `class_version` the stored event was; once it is upcast, 1."""

    create_timestamp = staticmethod(CanCreateTimestamp.create_timestamp)

    def mutate(self, aggregate: "Conversation") -> "Conversation":
        """Fold this event into *aggregate*; the library calls it for every triggered event."""
        aggregate.fold(self)
        return aggregate


class Entry(Event, frozen=True, kw_only=True):
    """An event that is a node of the tree. Its id is its version."""

    parent: Version | None


# -- facts about the conversation --------------------------------------------------------------


class Started(Event, frozen=True, kw_only=True):
    """A conversation began in the directory *cwd*, created by *program* of *version*.

    *seal* shows that it was begun here: tools run in *cwd* unasked (see `domain.seals`).
    """

    TOPIC = "Started"
    cwd: str
    program: str = ""
    version: str = ""
    metadata: JsonObject = {}
    seal: str = ""


class Forked(Event, frozen=True, kw_only=True):
    """This log began as a byte prefix of another: events 1…*source_version* of *source_id*."""

    TOPIC = "Forked"
    source_id: UUID
    source_version: Version
    entry: Version | None


class ModelChanged(Event, frozen=True, kw_only=True):
    """The model of the following requests, and how many tokens it may answer with.

    *caching* says whether its server keeps the beginning of requests (``cache_control``).
    """

    TOPIC = "ModelChanged"
    model: str
    max_tokens: int
    caching: bool = False


class LimitsLearned(Event, frozen=True, kw_only=True):
    """The server of *model* said how many tokens it takes in, or lets it answer with; or a guess.

    None is nothing new. It holds for that model from here on.
    """

    TOPIC = "LimitsLearned"
    model: str
    context_window: int | None = None
    max_tokens: int | None = None


class ContentWithheld(Event, frozen=True, kw_only=True):
    """Blocks of the *kinds* in the entries *targets* are not sent to *model* from here on.

    It refused them, and said *reason*. A kind is a type of blocks: image, document, thinking, or
    one that this program does not know.
    """

    TOPIC = "ContentWithheld"
    targets: tuple[Version, ...]
    kinds: tuple[str, ...]
    model: str
    reason: str = ""


class ThinkingLevelChanged(Event, frozen=True, kw_only=True):
    """How hard the model thinks from here on: off, low, medium, high, xhigh or max."""

    TOPIC = "ThinkingLevelChanged"
    level: str


class InstructionsChanged(Event, frozen=True, kw_only=True):
    """The system prompt and the tool definitions of the following requests."""

    TOPIC = "InstructionsChanged"
    system: str
    tools: msgspec.Raw

    @property
    def tool_definitions(self) -> list[JsonObject]:
        """The tools as recorded, decoded at each call; nothing if they are no list."""
        tools = decoded(self.tools)
        if not isinstance(tools, list):
            return []
        return [tool for tool in tools if isinstance(tool, dict)]


class LabelChanged(Event, frozen=True, kw_only=True):
    """An entry was given a *label*, or (none) lost it."""

    TOPIC = "LabelChanged"
    target: Version
    label: str | None


class Renamed(Event, frozen=True, kw_only=True):
    """The conversation was given a *name*, or (none) lost it."""

    TOPIC = "Renamed"
    name: str | None


class Archived(Event, frozen=True, kw_only=True):
    """The conversation was put away, or brought back."""

    TOPIC = "Archived"
    archived: bool


class LeafMoved(Event, frozen=True, kw_only=True):
    """The next entry hangs from *target*, or (none) starts a new root."""

    TOPIC = "LeafMoved"
    target: Version | None


# -- facts about a turn ------------------------------------------------------------------------


class ApprovalDecided(Event, frozen=True, kw_only=True):
    """The user said whether a call of *tool* may run: *decision* is yes, always or no.

    *always* holds for the tool, or with a *command* for exactly that command, in the directory
    *cwd*, and only with a *seal* that shows that it was said here (see `domain.seals`).
    """

    TOPIC = "ApprovalDecided"
    tool_use_id: str
    tool: str
    decision: str
    command: str | None = None
    reason: str = ""
    cwd: str = ""
    seal: str = ""


class ToolStarted(Event, frozen=True, kw_only=True):
    """A tool is about to run: the intent, recorded before the effect."""

    TOPIC = "ToolStarted"
    tool_use_id: str


class PromptQueued(Event, frozen=True, kw_only=True):
    """A prompt was typed while a turn ran; *text* is durable from here on.

    Without a *seal* that shows that it was typed here, it is not sent (see `domain.seals`).
    """

    TOPIC = "PromptQueued"
    text: str
    seal: str = ""


class PromptWithdrawn(Event, frozen=True, kw_only=True):
    """A queued prompt was taken back, or delivered as a message."""

    TOPIC = "PromptWithdrawn"
    target: Version


class TurnError(msgspec.Struct, frozen=True):
    """Why a turn failed: the error's type and message, and the API's request id."""

    type: str
    message: str
    request_id: str | None = None


class TurnEnded(Event, frozen=True, kw_only=True):
    """A turn is over: *outcome* is done, interrupted or failed.

    *spent* are the tokens of the turn, by kind; *lost* the part of them that no entry accounts for:
    attempts that left no answer behind.
    """

    TOPIC = "TurnEnded"
    outcome: str
    error: TurnError | None = None
    spent: JsonObject = {}
    lost: JsonObject = {}


# -- entries -----------------------------------------------------------------------------------


class MessageAppended(Entry, frozen=True, kw_only=True):
    """A message was added to the tree.

    For an assistant's message: *model* is the one that was asked, *request_digest* the digest of
    the request that it answers, and *request_version* the version of the log from which that
    request was projected, by the version *projection* of the context projection. *duration* is in
    seconds. *message* is as our own encoder writes it, whatever the log says: the mapper sees to
    that, and its bytes may be passed on as they are. For a tool's result: *seen* are the files that
    the model knows whole from it, each path with a digest of its content. An answer with calls has
    a *seal*: it shows that they were recorded here, and may be taken up after a crash (see
    `domain.seals`).
    """

    TOPIC = "MessageAppended"
    parent: Version | None
    message: msgspec.Raw
    model: str | None = None
    stop_reason: str | None = None
    usage: JsonObject | None = None
    response_id: str | None = None
    duration: float | None = None
    request_digest: str | None = None
    request_version: Version | None = None
    projection: str | None = None
    seen: dict[str, str] = {}
    seal: str = ""

    @property
    def content(self) -> MessageContent:
        """Who says what, decoded again at each call: nothing is shared that could be changed."""
        body = decoded(self.message)
        if isinstance(body, dict) and (role := body.get("role")) in ROLES:
            return MessageContent(role, blocks_of(body.get("content")))
        text = body if isinstance(body, str) else bytes(self.message).decode("utf-8", "replace")
        role = "assistant" if self.model else "user"
        return MessageContent(role, blocks_of(f"(unreadable: {text})"), is_readable=False)


class SummaryStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request for a summary: its digest, and its *answer* where the next request holds it."""

    digest: str
    answer: str = ""


class SummaryRequests(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The requests behind a summary, with what they cannot be rebuilt without.

    They were made from the path to *leaf* as the log was at *version*, by the version *projection*
    of the projection. *is_whole*: the request was the conversation's own, and asked for the summary
    at its end. Else the past was told in pieces that fit a *window* of so many tokens.
    """

    version: Version
    leaf: Version
    window: int
    projection: str
    steps: tuple[SummaryStep, ...]
    focus: str = ""
    is_whole: bool = False


class Compacted(Entry, frozen=True, kw_only=True):
    """Everything before *first_kept* is represented by *summary* from here on."""

    TOPIC = "Compacted"
    parent: Version | None
    summary: str
    first_kept: Version | None
    tokens_before: int = 0
    model: str | None = None
    usage: JsonObject | None = None
    reason: str = ""
    asked: SummaryRequests | None = None


class BranchSummarized(Entry, frozen=True, kw_only=True):
    """A branch that ended at *left* was left; *summary* says what happened there."""

    TOPIC = "BranchSummarized"
    parent: Version | None
    left: Version = msgspec.field(name="from")
    summary: str
    model: str | None = None
    usage: JsonObject | None = None
    asked: SummaryRequests | None = None


class NoteAppended(Entry, frozen=True, kw_only=True):
    """Something other than a message: an embedding program's note, the output of ``!cmd``."""

    TOPIC = "NoteAppended"
    parent: Version | None
    kind: str
    content: str
    visible: bool
    """Whether the model sees it."""


class Unrecognised(Event, frozen=True, kw_only=True):
    """A stored event that this version cannot read: kept, skipped, never a failure.

    *is_newer*: a newer version of this program changed what an event of this topic says. A
    program that cannot read it must not write after it.
    """

    TOPIC = "Unrecognised"
    topic: str
    state: bytes
    reason: str
    is_newer: bool = False


TOPICS: MappingProxyType[str, type[Event]] = MappingProxyType(
    {
        event.TOPIC: event
        for event in (
            Started,
            Forked,
            MessageAppended,
            Compacted,
            BranchSummarized,
            NoteAppended,
            ModelChanged,
            LimitsLearned,
            ContentWithheld,
            ThinkingLevelChanged,
            InstructionsChanged,
            ApprovalDecided,
            ToolStarted,
            PromptQueued,
            PromptWithdrawn,
            TurnEnded,
            LeafMoved,
            LabelChanged,
            Renamed,
            Archived,
        )
    }
)
