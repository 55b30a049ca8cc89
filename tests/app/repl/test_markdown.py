"""Markdown as it streams, and as it is shown."""

import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from app.repl.markdown import Markdown
from app.repl.markdown_stream import MarkdownStream

DOCUMENT = """\
# Title

Some *text* that
goes on.

1. one

2. two
   more

```python
def f():

    return "# no title"
```

| a | b |
|---|---|
| 1 | 2 |

> quoted

- x
- y

***

last"""


def rendered(*texts, width=60):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    for number, text in enumerate(texts):
        if number:
            console.line()
        console.print(Markdown(text))
    return console.file.getvalue()


def pieces_of(text, cuts=()):
    stream, finished = MarkdownStream(), []
    bounds = [0, *sorted(cuts), len(text)]
    for start, end in itertools.pairwise(bounds):
        finished.append(stream.feed(text[start:end]))
    return [*filter(None, finished), stream.finish()]


@given(st.sets(st.integers(0, len(DOCUMENT))))
def test_however_it_arrives_it_looks_as_if_it_had_come_at_once(cuts):
    assert rendered(*pieces_of(DOCUMENT, cuts)) == rendered(DOCUMENT)


def test_blocks_are_finished_one_by_one():
    pieces = pieces_of(DOCUMENT + "\n", range(len(DOCUMENT)))

    assert [piece.split("\n")[0] for piece in pieces] == [
        "# Title",
        "Some *text* that",
        "1. one",
        "```python",
        "| a | b |",
        "> quoted",
        "- x",
        "***",
        "last",
    ]


def test_a_numbered_list_is_not_cut_between_number_and_dot():
    stream = MarkdownStream()

    assert [stream.feed(piece) for piece in ("1. a\n", "\n2", ". b\n")] == ["", "", ""]
    assert stream.finish() == "1. a\n\n2. b"


def test_a_line_end_of_two_characters_may_arrive_in_two_pieces():
    stream = MarkdownStream()
    stream.feed("a\r")
    stream.feed("\nb\r")

    assert stream.tail == "a\nb"


@pytest.mark.parametrize(
    "text",
    ["\x1b[31mred", "`\x1b[31m`", "&#x202e;evil", "[a](http://x/\u202e)", "<b>\x1b]0;t\x07</b>"],
)
def test_no_markup_smuggles_a_control_character(text):
    output = rendered(text)

    assert not {"\x1b", "\x07", "\u202e"} & set(output)


def test_links_show_where_they_lead():
    console = Console(file=io.StringIO(), width=60, force_terminal=True)
    console.print(Markdown("[the bank](https://evil.example)"))

    assert "https://evil.example" in console.file.getvalue()
    assert "\x1b]8" not in console.file.getvalue()


def test_a_link_that_is_its_own_text_is_shown_once():
    console = Console(file=io.StringIO(), width=60)
    console.print(
        Markdown("see <https://a.example/b>, or *[https://c.example](https://c.example)*")
    )

    assert console.file.getvalue() == "see https://a.example/b, or https://c.example\n"


def test_html_is_shown_as_text():
    assert rendered("<div>\nhi\n</div>\n\na <br> b") == "<div>\nhi\n</div>\n\na <br> b\n"


def test_lines_end_without_blanks():
    assert all(line == line.rstrip() for line in rendered(DOCUMENT).split("\n"))
