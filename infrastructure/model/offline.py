"""The offline model: a few fixed rules that answer Messages API requests. Not a language model.

Pure functions from a request body to a `Reply`: no clock, no randomness, no socket (that is
`offline_server`). The same request always gets the same answer, ids included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from infrastructure.model import offline_phrases as phrases

Json = dict[str, Any]

_MAX_QUOTED_PROMPTS = 20
_MAX_QUOTED_CHARACTERS = 200
_MAX_SHOWN_LINES = 200
_MAX_SHOWN_CHARACTERS = 10_000
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answers: content blocks, why it stopped, and what that cost."""

    content: tuple[Json, ...]
    stop_reason: str
    usage: Json


def respond(request: Json) -> Reply:
    """Answer the Messages API body *request* by the rules below.

    The last user text chooses the rule. Tool results in the latest user message are shown first;
    when no text came with them, showing them is the whole answer. The request is one that the API
    would take.
    """
    turn = _Turn.of(request)
    blocks = [*_show_results(turn), *_follow(turn)]
    # A thinking block leads its message, as the API would send it.
    blocks.sort(key=lambda block: block["type"] != "thinking")
    calls = any(block["type"] == "tool_use" for block in blocks)
    stop_reason = "tool_use" if calls else "end_turn"
    return Reply(tuple(blocks), stop_reason, usage(request, blocks))


def count_tokens(request: Json) -> int:
    """Estimate the input tokens of *request*: a quarter of the characters of what counts in it."""
    return _tokens({key: request[key] for key in ("system", "tools", "messages") if key in request})


def usage(request: Json, content: list[Json]) -> Json:
    """Return what answering *request* with *content* costs, by the same estimate."""
    return {
        "input_tokens": count_tokens(request),
        "output_tokens": _tokens(content),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }


def fingerprint(request: Json, *salt: str | int) -> str:
    """Return 16 hex digits that name *request*, and the *salt* within it.

    Requests of one conversation only grow, so ids made of this are unique in it.
    """
    text = "\0".join([_canonical(request), *map(str, salt)])
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def signature(model: str, thinking: str) -> str:
    """Return the made-up signature of a thinking block: bound to its text and its model."""
    digest = sha256(f"{model}\0{thinking}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"offline-{digest}"


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _tokens(value: Any) -> int:
    return -(-len(_canonical(value)) // _CHARACTERS_PER_TOKEN)


# What is asked.


@dataclass(frozen=True, slots=True)
class _Turn:
    """One request, read once: its prompts, the results that it brings, the tools it offers."""

    request: Json
    prompts: tuple[str, ...]
    prompted: bool  # the last prompt is part of the latest message
    results: tuple[tuple[Json, Json], ...]  # (tool_use, tool_result)
    tools: frozenset[str]
    chinese: bool

    @classmethod
    def of(cls, request: Json) -> _Turn:
        messages = request["messages"]
        users = [_blocks(message) for message in messages if message["role"] == "user"]
        prompts = [text for blocks in users for text in _texts(blocks)]
        latest = _blocks(messages[-1]) if messages[-1]["role"] == "user" else []
        calls = {
            block.get("id"): block
            for message in messages[-2:-1]
            for block in _blocks(message)
            if block.get("type") == "tool_use"
        }
        results = [
            (calls.get(block.get("tool_use_id"), {}), block)
            for block in latest
            if block.get("type") == "tool_result"
        ]
        return cls(
            request=request,
            prompts=tuple(prompts),
            prompted=bool(_texts(latest)),
            results=tuple(results),
            tools=frozenset(str(tool.get("name")) for tool in request.get("tools") or ()),
            chinese=bool(prompts and re.search(r"[\u3400-\u9fff]", prompts[-1])),
        )

    @property
    def earlier(self) -> list[str]:
        """What was asked before, also what a summary quotes."""
        return [quoted for prompt in self.prompts[:-1] for quoted in _quotable(prompt)]

    def say(self, english: str, chinese: str) -> str:
        return chinese if self.chinese else english

    def answer(self, english: str, chinese: str) -> list[Json]:
        return _text(self.say(english, chinese))


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _texts(blocks: list[Json]) -> list[str]:
    """Return what the user says in *blocks*: no blanks, and no remarks of the program's own."""
    texts = [str(block.get("text", "")).strip() for block in blocks if block.get("type") == "text"]
    return [text for text in texts if text and not (text[0] == "(" and text[-1] == ")")]


# What is done about it: one function per rule.


def _follow(turn: _Turn) -> list[Json]:
    if not turn.prompted:
        return [] if turn.results else _introduce(turn)
    prompt = turn.prompts[-1]
    for pattern, rule in _RULES:
        if match := pattern.fullmatch(prompt):
            return rule(turn, match)
    return _introduce(turn)


def _text(text: str) -> list[Json]:
    return [{"type": "text", "text": text}]


def _calls(turn: _Turn, name: str, *inputs: Json) -> list[Json]:
    if name not in turn.tools:
        return turn.answer(
            f"I cannot do that: the tool `{name}` is not offered in this request.",
            f"做不到：这次请求没有提供工具 `{name}`。",
        )
    return [
        {
            "type": "tool_use",
            "id": f"toolu_offline_{fingerprint(turn.request, index)}",
            "name": name,
            "input": input_,
        }
        for index, input_ in enumerate(inputs)
    ]


def _list_files(turn: _Turn, _match: re.Match[str]) -> list[Json]:
    if "bash" not in turn.tools and "ls" in turn.tools:
        return _calls(turn, "ls", {})
    return _calls(turn, "bash", {"command": "ls"})


def _call_of(name: str) -> _Rule:
    """Return the rule that calls a tool with what the phrase names: its groups are arguments."""
    return lambda turn, match: _calls(turn, name, _unquoted(match.groupdict()))


def _edit(turn: _Turn, match: re.Match[str]) -> list[Json]:
    path, old, new = _unquoted(match.groupdict()).values()
    return _calls(turn, "edit", {"path": path, "edits": [{"old_text": old, "new_text": new}]})


def _unquoted(arguments: Json) -> Json:
    path = arguments.get("path", " ")
    return {**arguments, "path": path[1:-1]} if path[0] in "\"'`" else arguments


def _use_tools(turn: _Turn, match: re.Match[str]) -> list[Json]:
    count = phrases.NUMBERS.get(match["count"].lower())
    if count is None:
        return turn.answer("I can use 1 to 16 tools at once.", "我一次可以用 1 到 16 个工具。")
    commands = ({"command": f"echo {number}"} for number in range(1, count + 1))
    return _calls(turn, "bash", *commands)


def _recall(turn: _Turn, _match: re.Match[str]) -> list[Json]:
    earlier = turn.earlier
    if not earlier:
        return turn.answer(
            "Nothing came before this in the messages that I was sent.",
            "在我收到的消息里，这之前什么都没有。",
        )
    numbered = [f"{number}. “{_quote(prompt)}”" for number, prompt in enumerate(earlier, 1)]
    skipped = max(0, len(earlier) - _MAX_QUOTED_PROMPTS - 1)
    lines = [numbered[0], *numbered[skipped + 1 :]]  # the first is what it all began with
    lead = turn.say(
        "From the messages that I was sent, you asked me, oldest first:",
        "从我收到的消息来看，你之前让我做的是（从早到晚）：",
    )
    if skipped:
        lead += turn.say(f" ({skipped} left out)", f"（省略 {skipped} 条）")
    return _text("\n".join([lead, "", *lines]))


def _quotable(prompt: str) -> list[str]:
    """Return *prompt*, or the prompts that are quoted in it if it is a summary."""
    if not prompt.startswith("Summary of "):
        return [prompt]
    return list(dict.fromkeys(re.findall(r"\[User\]:?[ \t]*(.+)", prompt)))


def _quote(prompt: str) -> str:
    line = " ".join(prompt.split())
    return line if len(line) <= _MAX_QUOTED_CHARACTERS else line[:_MAX_QUOTED_CHARACTERS] + "…"


def _think(turn: _Turn, match: re.Match[str]) -> list[Json]:
    if (turn.request.get("thinking") or {}).get("type") == "disabled":
        return turn.answer(
            "Thinking is switched off in this request, so there is no thinking block.",
            "这次请求关闭了思考，所以没有思考块。",
        )
    topic = _quote(match["topic"]) or turn.say("nothing in particular", "没有具体内容")
    thinking = turn.say(
        f"This is a sample thinking block of the offline model. The topic was: {topic}",
        f"这是离线模型的思考块样例。题目是：{topic}",
    )
    block = {
        "type": "thinking",
        "thinking": thinking,
        "signature": signature(turn.request["model"], thinking),
    }
    return [
        block,
        *turn.answer(
            "The thinking block before this is a fixed sample: I follow rules, I do not think.",
            "上面的思考块是固定的样例：我只按规则回答，并不会思考。",
        ),
    ]


def _introduce(turn: _Turn) -> list[Json]:
    return turn.answer(phrases.USAGE_ENGLISH, phrases.USAGE_CHINESE)


def _summarise(turn: _Turn, match: re.Match[str]) -> list[Json]:
    """Quote what was asked, and which files: in the prompt, else in the messages before it."""
    text = match["text"]
    if "[User]" not in text and len(turn.prompts) > 1:
        lines = [f"[User] {_quote(prompt)}" for prompt in turn.earlier]
        text = "\n".join([*lines, _canonical(turn.request["messages"][:-1])])
    asked = list(dict.fromkeys(re.findall(r"(?m)^[ \t>-]*(\[User\].*?)[ \t]*$", text)))
    paths = dict.fromkeys(re.findall(r'"path"\s*:\s*"([^"\n]+)"', text))
    unknown = ["Unknown: the offline model quotes, it does not understand."]
    sections = {
        "Goal": asked[:1] or unknown,
        "Constraints": unknown,
        "Progress": asked[-_MAX_QUOTED_PROMPTS:] or unknown,
        "Decisions": unknown,
        "Next steps": asked[-1:] or unknown,
        "Files": [f"`{path}`" for path in paths] or ["None named."],
    }
    return _text(
        "\n\n".join(
            "\n".join([f"## {heading}", *(f"- {line}" for line in lines)])
            for heading, lines in sections.items()
        )
    )


# How tool results are told.


def _show_results(turn: _Turn) -> list[Json]:
    shown = [_show(turn, call, result) for call, result in turn.results]
    if not shown:
        return []
    if len(shown) > 1:
        count = len(shown)
        lead = turn.say(f"Here are the results of {count} calls.", f"这是 {count} 次调用的结果。")
        shown.insert(0, lead)
    return _text("\n\n".join(shown))


def _show(turn: _Turn, call: Json, result: Json) -> str:
    text = _result_text(result)
    lead, empty = _lead(turn, call, failed=result.get("is_error") is True)
    if not text.strip():
        return empty
    fence = "`" * max(3, *(1 + len(run) for run in re.findall("`+", text)), 3)
    return f"{lead}\n\n{fence}\n{_capped(turn, text)}\n{fence}"


def _lead(turn: _Turn, call: Json, *, failed: bool) -> tuple[str, str]:
    """Return the sentence before a result, and the one that stands for an empty result."""
    name, input_ = str(call.get("name", "unknown")), call.get("input") or {}
    what = _code(name, input_.get("command") or input_.get("path"))
    kind = "ls" if name == "bash" and input_.get("command") == "ls" else name
    english, chinese = phrases.LEADS.get("failed" if failed else kind, phrases.LEADS["bash"])
    lead, empty = english if not turn.chinese else chinese
    return lead.format(what), empty.format(what)


def _code(name: str, argument: Any) -> str:
    """Return the call as inline code: the tool, and what it was given."""
    text = _quote(f"{name} {argument}" if isinstance(argument, str) else name)
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def _result_text(result: Json) -> str:
    content = result.get("content", "")
    if isinstance(content, str):
        return content.rstrip("\n")
    parts = [
        str(block.get("text", "")) if block.get("type") == "text" else f"[{block.get('type')}]"
        for block in content or ()
    ]
    return "\n".join(parts).rstrip("\n")


def _capped(turn: _Turn, text: str) -> str:
    lines = text.split("\n")
    shown = "\n".join(lines[:_MAX_SHOWN_LINES])[:_MAX_SHOWN_CHARACTERS]
    left = len(text) - len(shown)
    if not left:
        return text
    return shown + turn.say(
        f"\n… ({left} more characters not repeated here)",
        f"\n……（还有 {left} 个字符，此处不再重复）",
    )


# Which prompts choose which rule. The first pattern that matches all of the prompt wins.

_Rule = Callable[[_Turn, re.Match[str]], list[Json]]
_RULES: tuple[tuple[re.Pattern[str], _Rule], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL | re.VERBOSE), rule)
    for pattern, rule in (
        (phrases.SUMMARISE, _summarise),
        (phrases.LIST_FILES, _list_files),
        (phrases.READ, _call_of("read")),
        (phrases.WRITE, _call_of("write")),
        (phrases.EDIT, _edit),
        (phrases.RUN, _call_of("bash")),
        (phrases.USE_TOOLS, _use_tools),
        (phrases.USE_TOOLS_CHINESE, _use_tools),
        (phrases.RECALL, _recall),
        (phrases.THINK, _think),
    )
)
