"""Who stands in for people in the tests of the application. The model is a real server."""

from app.agent import Agent
from app.compactor import Compactor
from app.configuration import DEFAULT_TOOLS
from app.instructions import surroundings, system_prompt
from app.ports import UNASKED, Approval
from app.tool_calls import ToolCalls
from app.turn_limits import DEFAULT_LIMITS
from domain.conversation import Conversation
from infrastructure.model.client import AnthropicModel
from infrastructure.tools import TOOLS, Toolbox

STOPPED = "interrupted; the command and its children were killed"


class Witness:
    """A screen that remembers what it was shown."""

    def __init__(self):
        self.shown, self.asked_for = [], []

    def asking(self, purpose):
        self.asked_for.append(purpose)

    def streamed(self, event):
        self.shown.append(("streamed", event["type"]))

    def answered(self):
        self.shown.append(("answered",))

    def tool_started(self, call, summary):
        self.shown.append(("tool_started", call.name, summary))

    def tool_printed(self, call, text):
        self.shown.append(("tool_printed", text))

    def tool_ended(self, call, output):
        self.shown.append(("tool_ended", output.content, output.is_error))

    def compacting(self, tokens):
        self.shown.append(("compacting", tokens))

    def compacted(self, tokens):
        self.shown.append(("compacted", tokens))

    def turn_ended(self, outcome, error):
        self.shown.append(("turn_ended", outcome, error.message if error else None))


class Judge:
    """An approver that answers from a list, and then lets everything run."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def decide(self, proposal):
        self.asked.append(proposal.summary)
        answer = self.answers.pop(0) if self.answers else UNASKED
        return Approval("no", reason=answer) if isinstance(answer, str) else answer


def begin(cwd="/work", model="test-model", max_tokens=4096):
    """Return the function that begins a conversation."""

    def make(conversation_id, timestamp):
        talk = Conversation.start(conversation_id, timestamp=timestamp, cwd=cwd)
        talk.change_model(model, max_tokens=max_tokens)
        talk.change_thinking_level("off")
        return talk

    return make


class Desk:
    """An agent in a conversation at hand, against a server, in a directory of its own."""

    def __init__(
        self,
        conversations,
        server,
        cwd,
        *,
        at_hand=None,
        approver=None,
        toolbox=None,
        window=200_000,
        limits=DEFAULT_LIMITS,
    ):
        self.at_hand = at_hand or conversations.start(begin(str(cwd)))
        self.screen, self.approver = Witness(), approver or Judge()
        self.model = AnthropicModel(base_url=server.url, api_key="test", max_retries=0)
        offered = [tool for tool in TOOLS if tool.name in DEFAULT_TOOLS]
        self.toolbox = toolbox or Toolbox(cwd=cwd, side_files=cwd / ".outputs", tools=offered)
        self.compactor = Compactor(self.at_hand, self.model, self.screen, lambda _: window)
        self.agent = Agent(
            open_conversation=self.at_hand,
            compactor=self.compactor,
            limits=limits,
            model=self.model,
            tool_calls=ToolCalls(
                self.at_hand, self.toolbox, self.approver, self.screen, cwd=str(cwd)
            ),
            screen=self.screen,
            prepare=lambda talk: talk.change_instructions(
                system_prompt(
                    str(cwd),
                    tools=getattr(self.toolbox, "tools", ("bash",)),
                    surroundings=surroundings(str(cwd), talk, None),
                ),
                self.toolbox.definitions(),
            ),
        )

    @property
    def talk(self):
        return self.at_hand.conversation

    async def goes_on(self):
        """Take up what waits; return the outcome."""
        try:
            return await self.agent.go_on()
        finally:
            await self.model.close()

    async def say(self, *prompts):
        """Run a turn for each prompt; return the last outcome."""
        try:
            for prompt in prompts:
                outcome = await self.agent.run_turn(prompt)
            return outcome
        finally:
            await self.model.close()
