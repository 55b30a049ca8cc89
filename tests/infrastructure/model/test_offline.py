"""The offline model's rules: request in, reply out, no server."""

import copy
import json

import pytest

from infrastructure.model import offline
from infrastructure.model.offline import respond
from tests import api_rules

TOOLS = [
    {"name": name, "input_schema": {"type": "object"}} for name in ("bash", "read", "write", "edit")
]


def user(content):
    return {"role": "user", "content": content}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def request(*messages, **more):
    body = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 1000,
        "tools": TOOLS,
        "messages": list(messages),
    }
    body.update(more)
    assert api_rules.violations(body) == []
    return body


def ask(prompt, **more):
    return respond(request(user(prompt), **more))


def only_text(reply):
    (block,) = reply.content
    assert block["type"] == "text"
    assert reply.stop_reason == "end_turn"
    return block["text"]


def answer(prompt, *results):
    """Ask, let the calls that come back have these *results*, and return the final text."""
    first = respond(request(user(prompt)))
    calls = [block for block in first.content if block["type"] == "tool_use"]
    blocks = [
        {"type": "tool_result", "tool_use_id": call["id"], **result}
        for call, result in zip(calls, results, strict=True)
    ]
    return only_text(respond(request(user(prompt), assistant(*first.content), user(blocks))))


LIST = ("bash", {"command": "ls"})


@pytest.mark.parametrize(
    ("prompt", "call"),
    [
        ("list the files here", LIST),
        ("List the files here.", LIST),
        ("  please list files\n", LIST),
        ("ls", LIST),
        ("show me all the files in the current directory!", LIST),
        ("what files are here?", LIST),
        ("列出当前目录的文件", LIST),
        ("请列出当前目录下的所有文件。", LIST),
        ("列出文件", LIST),
        ("当前目录里有哪些文件？", LIST),
        ("read a.py", ("read", {"path": "a.py"})),
        ("Read the file src/a.py", ("read", {"path": "src/a.py"})),
        ('read "my notes.txt"', ("read", {"path": "my notes.txt"})),
        ("读取 a.py", ("read", {"path": "a.py"})),
        ("读取文件 笔记.txt", ("read", {"path": "笔记.txt"})),
        ("write a.txt: hello: world", ("write", {"path": "a.txt", "content": "hello: world"})),
        ("write `a b.txt`: one\ntwo\n", ("write", {"path": "a b.txt", "content": "one\ntwo"})),
        ("写入 a.txt：你好", ("write", {"path": "a.txt", "content": "你好"})),
        ("run: git status | head", ("bash", {"command": "git status | head"})),
        ("run: echo a\necho b", ("bash", {"command": "echo a\necho b"})),
        ("运行：ls -la", ("bash", {"command": "ls -la"})),
        (
            "edit a.py: x = 1 -> x = 2",
            ("edit", {"path": "a.py", "edits": [{"old_text": "x = 1", "new_text": "x = 2"}]}),
        ),
        ("编辑 a.py：旧 -> 新", ("edit", {"path": "a.py", "edits": [{"old_text": "旧", "new_text": "新"}]})),
    ],
)  # fmt: skip
def test_a_sentence_becomes_a_tool_call(prompt, call):
    reply = ask(prompt)

    (block,) = reply.content
    assert (block["type"], block["name"], block["input"]) == ("tool_use", *call)
    assert block["id"].startswith("toolu_offline_")
    assert reply.stop_reason == "tool_use"


@pytest.mark.parametrize(
    "prompt", ["read the docs and tell me", "run", "write a.txt", "hello", "how do I list files?"]
)
def test_anything_else_is_told_what_it_talks_to(prompt):
    text = only_text(ask(prompt))

    assert "offline model" in text
    assert "not a language model" in text
    assert "ANTHROPIC_API_KEY" in text


def test_anything_else_in_chinese_is_answered_in_chinese():
    text = only_text(ask("你好"))

    assert "离线模型" in text
    assert "不是语言模型" in text
    assert "ANTHROPIC_API_KEY" in text


def test_every_sentence_of_the_introduction_is_understood():
    for prompt in ("你好", "hello"):
        introduction = only_text(ask(prompt))
        sentences = [line[3:-1] for line in introduction.splitlines() if line.startswith("- `")]

        assert len(sentences) == 8
        for sentence in sentences:
            assert ask(sentence.replace(" N ", " 2 ")) != ask("hello")
            assert "ANTHROPIC_API_KEY" not in json.dumps(
                ask(sentence.replace(" N ", " 2 ")).content
            )


def test_files_are_listed_by_the_tool_that_is_offered():
    [call] = ask("ls", tools=[TOOLS[1], {**TOOLS[1], "name": "ls"}]).content

    assert (call["name"], call["input"]) == ("ls", {})


@pytest.mark.parametrize(("prompt", "words"), [("ls", "not offered"), ("列出文件", "没有提供")])
def test_a_tool_that_is_not_offered_is_not_called(prompt, words):
    text = only_text(ask(prompt, tools=TOOLS[1:]))

    assert words in text
    assert "`bash`" in text


@pytest.mark.parametrize(
    ("prompt", "count"),
    [
        ("use 1 tool", 1),
        ("use 3 tools at once", 3),
        ("use sixteen tools in parallel", 16),
        ("同时用 4 个工具", 4),
        ("同时用两个工具", 2),
        ("同时使用 十六 个工具。", 16),
    ],
)
def test_several_tools_are_called_at_once_with_unique_ids(prompt, count):
    blocks = ask(prompt).content

    assert [block["input"] for block in blocks] == [
        {"command": f"echo {n}"} for n in range(1, count + 1)
    ]
    assert len({block["id"] for block in blocks}) == count


@pytest.mark.parametrize(
    "prompt", ["use 0 tools", "use 17 tools at once", "use many tools", "同时用 17 个工具"]
)
def test_too_many_tools_are_refused(prompt):
    assert "16" in only_text(ask(prompt))


def test_ids_are_unique_in_a_conversation_and_the_same_for_the_same_request():
    first = request(user("ls"))
    reply = respond(first)
    result = {"type": "tool_result", "tool_use_id": reply.content[0]["id"], "content": "a"}
    again = request(
        user("ls"), assistant(*reply.content), user([result, {"type": "text", "text": "ls"}])
    )

    assert respond(copy.deepcopy(first)) == reply
    assert respond(again).content[-1]["id"] != reply.content[0]["id"]


def test_the_request_is_left_as_it_was():
    body = request(user([{"type": "text", "text": "use 3 tools at once"}]))
    before = copy.deepcopy(body)

    respond(body)

    assert body == before


def test_files_are_shown_from_the_result():
    assert answer("list the files here", {"content": "a.py\nb.py\n"}) == (
        "Here are the files in this directory:\n\n```\na.py\nb.py\n```"
    )
    assert (
        answer("列出当前目录的文件", {"content": "a.py"})
        == "当前目录里有这些文件：\n\n```\na.py\n```"
    )


def test_a_result_may_be_a_list_of_blocks():
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    content = [{"type": "text", "text": "one"}, image]

    assert answer("read a.png", {"content": content}) == (
        "Here is the content from `read a.png`:\n\n```\none\n[image]\n```"
    )


@pytest.mark.parametrize("result", [{}, {"content": ""}, {"content": "\n"}])
def test_an_empty_result_is_said_to_be_empty(result):
    assert answer("run: true", result) == "No output from `bash true`."
    assert answer("ls", result) == "There are no files in this directory."
    assert answer("读取 a", result) == "`read a` 是空的。"


def test_an_error_is_named_as_one():
    assert answer("run: false", {"content": "exit code 1", "is_error": True}) == (
        "Error from `bash false`:\n\n```\nexit code 1\n```"
    )
    assert answer("读取 a", {"content": "no", "is_error": True}).startswith("`read a` 出错：")


def test_each_of_several_results_is_named():
    results = [{"content": "1"}, {"content": "boom", "is_error": True}]

    assert answer("use 2 tools at once", *results) == (
        "Here are the results of 2 calls.\n\n"
        "Result of `bash echo 1`:\n\n```\n1\n```\n\n"
        "Error from `bash echo 2`:\n\n```\nboom\n```"
    )


def test_a_fence_is_longer_than_any_in_the_result():
    assert answer("read a.md", {"content": "```\ncode\n````"}).endswith(
        "`````\n```\ncode\n````\n`````"
    )


def test_a_long_result_is_shown_in_part():
    text = answer("read a.md", {"content": "\n".join(f"line {n}" for n in range(5000))})

    assert len(text) < 11_000
    assert "more characters not repeated here" in text


def test_a_prompt_beside_results_is_answered_after_them():
    body = request(
        user("run: sleep 9"),
        assistant({"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "sleep 9"}}),
        user(
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": "interrupted",
                    "is_error": True,
                },
                {"type": "text", "text": "(Continue.)"},
                {"type": "text", "text": "what did I ask you?"},
            ]
        ),
    )

    first, second = respond(body).content
    assert "Error from `bash sleep 9`" in first["text"]
    assert "1. “run: sleep 9”" in second["text"]
    assert "Continue" not in second["text"]


@pytest.mark.parametrize(
    "prompt",
    [
        "what did I ask you?",
        "What did I just ask you to do?",
        "what have i told you so far",
        "刚才我让你做什么了",
        "我刚才让你做了什么？",
        "我之前问了你什么",
        "刚才我说了什么？",
    ],
)
def test_it_recalls_the_prompts_that_it_was_sent(prompt):
    history = [user("list the files here"), assistant({"type": "text", "text": "ok"})]

    text = only_text(respond(request(*history, user([{"type": "text", "text": prompt}]))))

    assert "1. “list the files here”" in text
    assert prompt not in text


def test_it_says_so_when_nothing_came_before():
    assert only_text(ask("what did I ask you?")).startswith("Nothing came before")
    assert only_text(ask("刚才我让你做什么了")).startswith("在我收到的消息里，这之前什么都没有")


def test_it_recalls_the_first_and_the_newest_of_very_many_prompts():
    turns = [
        message
        for n in range(30)
        for message in (user(f"prompt {n}"), assistant({"type": "text", "text": "ok"}))
    ]

    text = only_text(respond(request(*turns, user("what did I ask you?"))))

    assert "(9 left out)" in text
    assert "1. “prompt 0”" in text
    assert "“prompt 9”" not in text
    assert "11. “prompt 10”" in text
    assert "30. “prompt 29”" in text


def test_it_recalls_through_a_summary_that_quotes_prompts():
    quoted = only_text(
        ask("Summarise this conversation\n\n[User]: ls\n[Assistant]: ok\n[User]: read a.py")
    )
    blocks = [f"Summary of the conversation so far:\n\n{quoted}", "what did I ask you?"]

    text = only_text(respond(request(user([{"type": "text", "text": text} for text in blocks]))))

    assert text.endswith("1. “ls”\n2. “read a.py”")


@pytest.mark.parametrize("prompt", ["think about primes", "Think…", "想一想质数", "think"])
def test_thinking_is_a_signed_sample(prompt):
    reply = ask(prompt)

    thinking, text = reply.content
    assert thinking["type"] == "thinking"
    assert thinking["signature"] == offline.signature("claude-sonnet-5-5", thinking["thinking"])
    assert text["type"] == "text"
    assert reply.stop_reason == "end_turn"


def test_thinking_that_is_switched_off_does_not_happen():
    assert "switched off" in only_text(ask("think hard", thinking={"type": "disabled"}))


def test_a_signature_is_bound_to_text_and_model():
    assert len({offline.signature(*pair) for pair in (("a", "bc"), ("ab", "c"), ("a", "bd"))}) == 3


def test_a_summary_has_its_headings_and_quotes_the_user():
    text = only_text(
        ask(
            'summarise this conversation:\n\n[User] ls\n[Tool call] read {"path": "a.py"}\n> [User] go on'
        )
    )

    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["Goal", "Constraints", "Progress", "Decisions", "Next steps", "Files"]
    assert "## Goal\n- [User] ls" in text
    assert "## Progress\n- [User] ls\n- [User] go on" in text
    assert "## Next steps\n- [User] go on" in text
    assert "## Files\n- `a.py`" in text


def test_tokens_are_a_quarter_of_the_characters():
    body = {"model": "m", "max_tokens": 5, "messages": [user("列" * 10)]}

    assert len('{"messages":[{"content":"","role":"user"}]}') == 43
    assert offline.count_tokens(body) == 14
    assert offline.count_tokens({"messages": [user("x" * 9)]}) == 13
    assert offline.count_tokens({**body, "system": "x" * 400}) >= offline.count_tokens(body) + 100
    assert offline.count_tokens({**body, "max_tokens": 9}) == offline.count_tokens(body)


def test_usage_is_counted():
    body = request(user("hello"))

    usage = respond(body).usage

    assert usage["input_tokens"] == offline.count_tokens(body)
    assert usage["output_tokens"] > 100


def test_lone_surrogates_do_not_stop_it():
    body = {"model": "m", "max_tokens": 5, "messages": [user("run: echo \ud83d")], "tools": TOOLS}

    assert respond(body).content[0]["input"] == {"command": "echo \ud83d"}


def test_a_message_of_only_an_image_is_introduced_to():
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}

    assert "offline model" in only_text(ask([image]))


def test_every_answer_may_go_back_to_the_api():
    for prompt in (
        "ls",
        "think",
        "你好",
        "use 16 tools at once",
        "write a: b",
        "刚才我让你做什么了",
    ):
        reply = ask(prompt)
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "x"}
            for block in reply.content
            if block["type"] == "tool_use"
        ]
        request(user(prompt), assistant(*reply.content), user(results or "go on"))
