"""The words that choose a rule of the offline model, and those in which it says which there are.

Patterns of `re.VERBOSE`, of which one has to match all of a prompt.
"""

from __future__ import annotations

USAGE_ENGLISH = """\
I am Leftfold's built-in offline model: a few fixed rules, not a language model. I understand:

- `list the files here`
- `read FILE`
- `write FILE: TEXT`
- `edit FILE: OLD -> NEW`
- `run: COMMAND`
- `use N tools at once`
- `think about SOMETHING`
- `what did I ask you?`

To talk to a real model, leave, set your key (`export ANTHROPIC_API_KEY=…`) and start again."""

USAGE_CHINESE = """\
我是 Leftfold 内置的离线模型：只有几条固定的规则，不是语言模型。我听得懂：

- `列出当前目录的文件`
- `读取 文件`
- `写入 文件：内容`
- `编辑 文件：旧 -> 新`
- `运行：命令`
- `同时用 N 个工具`
- `想一想……`
- `刚才我让你做什么了`

要使用真正的模型，请退出，设置密钥（`export ANTHROPIC_API_KEY=…`），然后重新启动。"""

LEADS = {
    "failed": (
        ("Error from {}:", "Error from {}, without a message."),
        ("{} 出错：", "{} 出错，没有说明。"),
    ),
    "ls": (
        ("Here are the files in this directory:", "There are no files in this directory."),
        ("当前目录里有这些文件：", "当前目录里没有文件。"),
    ),
    "read": (
        ("Here is the content from {}:", "Nothing is in it: {}."),
        ("{} 的内容：", "{} 是空的。"),
    ),
    "bash": (("Result of {}:", "No output from {}."), ("{} 的结果：", "{} 没有输出。")),
}
"""What is said before a result, and of an empty one."""

_ENGLISH_NUMBERS = """
    one two three four five six seven eight
    nine ten eleven twelve thirteen fourteen fifteen sixteen
"""
_CHINESE_NUMBERS = "一 二 三 四 五 六 七 八 九 十 十一 十二 十三 十四 十五 十六"
NUMBERS = {
    word: number
    for words in (_ENGLISH_NUMBERS, _CHINESE_NUMBERS, " ".join(map(str, range(1, 17))), "一 两")
    for number, word in enumerate(words.split(), 1)
}
_PATH = r"""(?P<path> "[^"\n]+" | '[^'\n]+' | `[^`\n]+` | [^\s:："'`][^\s:：]* )"""
_PLEASE = r"(?: please\s+ | can\s+you\s+ )?"
_QING = r"(?: 请你 | 请帮我 | 请 | 帮我 | 麻烦 )?\s*"

LIST_FILES = rf"""
    {_PLEASE} (?:
        ls
      | (?: list | show ) (?: \s+me )? (?: \s+all )? (?: \s+of )? (?: \s+the )? \s+files
        (?: \s+here | \s+in\s+here
          | \s+in\s+(?: this | the | the\s+current )\s+(?: directory | folder ) )?
      | what\s+files\s+are\s+(?: here | there )
    ) (?: ,?\s+please )? \s*[.!?]*
  | {_QING} (?: 列出 | 列一下 | 列举 | 显示 | 看看 | 查看 | 看一下 ) (?: 一下 )?
    (?: 当前 | 这个 | 本 )? (?: 目录 | 文件夹 )? (?: 里面 | 下面 | 里 | 下 | 中 )?
    的? (?: 所有 | 全部 )? 的? 文件 (?: 列表 )? \s*[。！.!？?]*
  | (?: (?: 当前 | 这个 | 本 ) (?: 目录 | 文件夹 ) | 这 ) (?: 里面 | 下面 | 里 | 下 | 中 )?
    有 (?: 哪些 | 什么 ) 文件 \s*[。？?]*
"""
READ = rf"""
    (?: {_PLEASE} read\s+(?: the\s+ )?(?: file\s+ )?
      | {_QING} (?: 读取 | 读一下 | 读 )\s*(?: 文件 )?\s* )
    {_PATH} \s*[。！]*
"""
WRITE = rf"""
    (?: {_PLEASE} write\s+(?: the\s+ )?(?: file\s+ )? | {_QING} (?: 写入 | 写 )\s*(?: 文件 )?\s* )
    {_PATH} \s*[:：][ \t]* (?P<content> .* )
"""
EDIT = rf"""
    (?: {_PLEASE} edit\s+(?: the\s+ )?(?: file\s+ )? | {_QING} (?: 编辑 | 修改 )\s*(?: 文件 )?\s* )
    {_PATH} \s*[:：][ \t]* (?P<old> .+? ) \s*(?: -> | → )[ \t]* (?P<new> .* )
"""
RUN = rf"(?: {_PLEASE} run | {_QING} (?: 运行 | 执行 ) ) \s*[:：]\s* (?P<command> .+ )"
USE_TOOLS = rf"""
    {_PLEASE} use\s+(?P<count> \w+ )\s+tools?
    (?: \s+(?: at\s+once | in\s+parallel | together | at\s+the\s+same\s+time ))? \s*[.!]*
"""
USE_TOOLS_CHINESE = rf"""
    {_QING} (?: 同时 | 一次 | 并行 ) (?: 使用 | 调用 | 用 )
    \s*(?P<count> \d+ | [一二两三四五六七八九十]+ )\s* 个?工具 \s*[。！.!]*
"""
RECALL = r"""
    what\s+(?: did | have | had )\s+i\s+(?: just\s+ )?
    (?: asked | ask | told | tell | said | say | wanted | want )
    (?: \s+(?: of | from | to ))? (?: \s+you )? (?: \s+to\s+do | \s+about | \s+for )?
    (?: \s+(?: before | earlier | just\s+now | so\s+far | last ))? \s*[.!?]*
  | (?: 刚才 | 刚刚 | 之前 | 前面 | 先前 | 我们 | 我 ){1,3} 都?
    (?: 让 | 叫 | 要 | 请 | 问 | 说 | 跟 | 对 ) 了?过?你?
    (?: 说 | 做 | 干 | 问 )? (?: 了 | 过 )? 些?
    (?: 什么 | 哪些 | 啥 ) (?: 事情 | 事 | 问题 | 话 )? (?: 了 | 吗 | 来着 | 呢 )? \s*[?？。!！]*
"""
THINK = rf"""
    (?: {_PLEASE} think (?: \s+(?: about | of | on | over | through )\b )? (?! \w )
      | {_QING} 你?(?: 想一想 | 想想 | 思考一下 | 思考 ) )
    \s*[:：,，.…]*\s* (?P<topic> .* )
"""
SUMMARISE = r"(?P<text> summari[sz]e\s+this\s+conversation .* )"
