"""The interface in Chinese: complete, chosen by the locale's variables, installed or not."""

import re
import string

import pexpect
import pytest

from app.i18n import language
from tests.app.messages import MO, clicks_own, compiled, messages_of_code, translations
from tests.app.programs import ROOT, Program
from tests.app.repl.terminal import ESC, PROMPT, Person
from tests.server import ScriptedServer, call, reply

CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def catalogue():
    return translations()


def test_every_message_of_the_code_has_a_translation_and_no_other_has(catalogue):
    said = messages_of_code()

    assert len(said) > 100
    assert {text: place for text, place in said.items() if not catalogue.get(text)} == {}
    assert catalogue.keys() - said.keys() - clicks_own() == {""}


def test_what_is_filled_in_is_the_same_in_both_languages(catalogue):
    def places(text):
        return sorted(str(part[1:]) for part in string.Formatter().parse(text) if part[1])

    wrong = {
        text for text, chinese in catalogue.items() if text and places(text) != places(chinese)
    }
    assert wrong == set()


def test_the_translations_are_chinese(catalogue):
    """But for what is made of names alone."""
    plain = {text for text, chinese in catalogue.items() if text and not CHINESE.search(chinese)}

    assert plain <= {
        "leftfold {version} · {model} · {cwd}",
        "{checked}: {verdict}",
        "{tokens}/{window} tokens ({share})",
        " ({shown} of {all})",
        " for {time}",
    }


def test_the_compiled_catalogue_is_up_to_date(catalogue):
    assert MO.read_bytes() == compiled(catalogue), "run: python -m tests.app.messages"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        ({"LANG": "zh_CN.UTF-8"}, "zh_CN"),
        ({"LANG": "zh"}, "zh_CN"),
        ({"LANG": "zh_TW.UTF-8"}, "zh_CN"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, None),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, "zh_CN"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh_CN"),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LC_ALL": "de_DE.UTF-8"}, None),
    ],
)
def test_the_locales_variables_choose_the_language(variables, expected):
    assert language(variables) == expected


def test_the_chinese_readme_names_what_the_english_one_names():
    names = re.compile(
        r"docs/[\w-]+\.md|`leftfold [a-z]+|\b(?:LEFTFOLD|ANTHROPIC|CIPHER|COMPRESSOR|PERSISTENCE)_\w+"
        r"|(?<![\w-])--[a-z-]+|`/[a-z]+`"
    )
    english, chinese = (
        set(names.findall((ROOT / name).read_text("utf-8")))
        for name in ("README.md", "README.zh-CN.md")
    )

    assert english - chinese == set()


# -- the real program ------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path):
    """The program under a locale that this machine need not have."""
    return Program(tmp_path, LC_ALL="zh_CN.UTF-8", LANG="zh_CN.UTF-8")


def test_errors_help_and_lists_are_chinese(program):
    assert program.run("show", "ffff").complaint == (
        "leftfold: 没有与 'ffff' 匹配的对话；`leftfold list --all` 列出全部\n"
    )
    assert program.run("list").err == "这里没有对话（--all 显示全部）\n"
    helped = program.run("--help").out
    assert "用法：" in helped
    assert "工具无需询问即可执行。" in helped
    assert "列出本目录的对话，最新的在前。" in helped
    assert "显示本帮助并退出。" in helped
    assert "所有目录的对话。" in program.run("list", "--help").out
    assert "没有选项 '--nope'" in program.run("--nope").err
    wrong = program.run("--offline", "-p", "x", "--tools", "bsh")
    assert wrong.complaint == "leftfold: --tools: 没有名为 'bsh' 的工具；您是不是想写 'bash'？\n"


def test_what_programs_and_models_read_is_not_translated(program):
    done = program.run("--offline", "-p", "hello", "--output", "json")
    assert (done.code, done.objects[0]["outcome"]) == (0, "done")
    assert "You are Leftfold" in program.run("context", program.id()).out


def test_a_terminal_that_has_no_chinese_gets_english(program):
    done = program.run("show", "ffff", environment={"PYTHONIOENCODING": "ascii"})

    assert "no conversation matches" in done.complaint


def test_in_english_gettext_is_loaded_by_nobody_of_ours(tmp_path):
    """click loads it; what counts is that no catalogue is looked for."""
    done = Program(tmp_path, LC_ALL="C.UTF-8").run("show", "ffff")

    assert "no conversation matches" in done.complaint


def test_a_person_talks_to_it_in_chinese(program):
    child = program.at_terminal("--offline", size=(40, 160))
    child.expect_exact("离线（--offline）：由内置的离线模型回答")
    child.expect_exact("/help 显示命令，q 退出")
    child.expect_exact("leftfold>")
    child.sendline("q")
    child.expect(pexpect.EOF)
    child.close()

    assert child.exitstatus == 0


ENGLISH = re.compile(r"[a-z]{2,},? [a-z]{2,}")
OTHERS = re.compile(r"(assistant|result) .*|bash, read, write, edit|off, low.*max")
READY = rf"{PROMPT}\s*\nclaude\S+ · \S* token（\d+%）.*$"
QUESTION = r"理由 *$"


def test_a_session_shows_nothing_of_ours_in_english(tmp_path):
    """What it shows, screen by screen: the model and its tools speak Chinese here, too."""
    calls = [reply(call("bash", command=f"echo {word}")) for word in "一二三四"]
    with ScriptedServer([step for each in calls for step in (each, reply("好。"))]) as server:
        person = Person(
            tmp_path, server, size=(60, 110), answers=True, LC_ALL="", LANG="zh_CN.UTF-8"
        )
        screens = [person.shows("显示命令", READY)]

        def does(keys, *patterns):
            person.presses(keys)
            screens.append(person.shows(*patterns))

        does("/help\r", "同样退出", READY)
        does("/hlep\r", "没有命令 /hlep", READY)
        for word, answer in zip("一二三四", "ynra", strict=True):
            does(f"第{word}个\r", f"允许 bash(?s:.*)echo {word}", QUESTION)
            person.presses(answer)
            if answer == "r":
                does("", "请说明理由")
                person.presses("太早了\r")
            does("", READY)
        does("/context\r", "合计", READY)
        does("/stats\r", "缓存命中", READY)
        does("/label 好\r", "标签", READY)
        does("/name 名字\r", "名为", READY)
        does("/thinking 深\r", "不是思考级别", READY)
        does("/tree\r", "搜索", "叶子", "Esc 退出")
        does("zzz", "没有匹配项")
        does(ESC, READY)
        does("/resume\r", "搜索", "Esc 退出")
        does(ESC, READY)
        does("\x03", "再按一次 Ctrl")
        person.presses("q\r")
        code, shown = person.ended()

    lines = {line for screen in [*screens, shown] for line in screen.split("\n")}
    assert {line for line in lines if ENGLISH.search(OTHERS.sub("", line))} == set()
    assert "继续此对话：leftfold -r" in shown
    assert code == 0


# -- how it reads ----------------------------------------------------------------------------------

TERMS = {
    "conversation": "对话", "event": "事件", "entry": "条目", "branch": "分支", "label": "标签",
    "prompt": "提示词", "trash": "回收站", "leaf": "叶子", "archive": "归档", "token": "token",
    "summary": "摘要", "tool": "工具", "answer": "回答", "request": "请求", "clipboard": "剪贴板",
}  # fmt: skip
"""One word for each thing, in both languages."""

NAMED_OTHERWISE = {"/tree ENTRY takes nothing or summary, not {word!r}."}
"""Here it is a word that is typed."""

STRANGERS = ("会话", "代理", "令牌", "你", "条目录", "收起", "抹掉", "叶节点", "提示符")
CODE = re.compile(r"`[^`]*`|\{[^}]*\}|\[y/N\]|\[\w\]")
HAN = "[\u4e00-\u9fff]"


def words(catalogue):
    return [(text, chinese) for text, chinese in catalogue.items() if text]


def test_the_punctuation_of_chinese_is_chinese(catalogue):
    """Beside a Chinese character, and behind what is filled in, there is no half-width mark."""
    half = re.compile(f"{HAN}[,;:?!()]|[,;:?!()]{HAN}|{HAN}\\.(\\s|$)|\\.\\.\\.")
    wrong = {chinese for _, chinese in words(catalogue) if half.search(CODE.sub("", chinese))}

    assert wrong == set()


def test_there_is_a_blank_between_chinese_and_other_scripts(catalogue):
    glued = re.compile(f"{HAN}[A-Za-z0-9@`]|[A-Za-z0-9`]{HAN}")
    wrong = {chinese for _, chinese in words(catalogue) if glued.search(chinese)}

    assert wrong == set()


def test_one_thing_has_one_name(catalogue):
    wrong = {
        (english, chinese)
        for text, chinese in words(catalogue)
        for english, term in TERMS.items()
        if re.search(rf"(?<![-_/{{])\b(?:{english}|{english.title()})s?\b(?![_}}])", text)
        and term not in chinese
        and text not in NAMED_OTHERWISE
    }

    assert wrong == set()
    assert not {chinese for _, chinese in words(catalogue) for word in STRANGERS if word in chinese}
