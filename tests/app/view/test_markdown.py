"""Markdown as it streams, and as it is shown."""

import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size
from rich.console import Console
from rich.text import Text

from app.view.markdown import Markdown
from app.view.markdown_stream import MarkdownStream
from app.view.wrapping import wrapped
from tests.app.repl.test_screen import Screen, answer, text

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
    for number, each in enumerate(texts):
        if number:
            console.line()
        console.print(Markdown(each), crop=False)
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


# -- what is copied is what was said (case R17) ---------------------------------------------------

LONG_LINE = "curl -fsSL https://example.com/" + "a" * 130 + " | tee out.log"
NESTED = f"""\
1. do this:

   ```bash
   cat <<'END' > Makefile
   \tall: x  \t
   END
   {LONG_LINE}
   ```
   - or

     > ```
     >   indented
     > ```
"""


@pytest.mark.parametrize("width", [20, 60, 100])
def test_code_stands_at_column_0_and_its_lines_are_whole_wherever_it_is(width):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(Markdown(NESTED), crop=False)
    lines = console.file.getvalue().split("\n")

    for line in ("cat <<'END' > Makefile", "\tall: x  \t", "END", LONG_LINE, "  indented"):
        assert line in lines


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cf"))))
def test_any_code_comes_out_as_it_went_in(code):
    shown = rendered(f"~~~~~python\n{code}\n~~~~~", width=30)

    assert shown == f"{code}\n" or "~~~~~" in code or not code.strip()


def test_an_answer_is_printed_with_its_long_lines_whole():
    screen = Screen(fancy=True)
    answer(screen, text(f"Try:\n```\n{LONG_LINE}\n```\nThen"))

    assert LONG_LINE in screen.text().split("\n")


def test_single_line_breaks_are_kept():
    assert rendered("1\n2\n3") == "1\n2\n3\n"
    assert rendered("- a\n  b\n\n> c\n> d") == "• a\n  b\n\n▌ c\n▌ d\n"


# -- how lines are broken -------------------------------------------------------------------------


def test_a_word_that_is_wider_than_the_screen_stays_whole():
    address = "https://example.com/" + "a" * 80

    assert rendered(f"see {address} now", width=40) == f"see\n{address}\nnow\n"


def test_chinese_is_broken_between_characters_and_no_line_begins_with_a_full_stop():
    assert rendered("汉字汉字。汉字", width=8) == "汉字汉\n字。汉字\n"
    assert rendered("汉字汉（字汉）", width=8) == "汉字汉\n（字汉）\n"


@given(st.text(st.sampled_from("ab 汉，。（\u0301"), max_size=60), st.integers(4, 20))
def test_lines_fit_and_nothing_but_blanks_is_lost(said, width):
    lines = [line.plain for line in wrapped(Text(said), width)]

    assert "".join(lines).replace(" ", "") == said.replace(" ", "")
    for line in lines:
        can_be_broken = any(
            character == " " or get_character_cell_size(character) > 1 for character in line[1:]
        )
        assert cell_len(line.rstrip()) <= width or not can_be_broken or set(line) & set("，。（")


def test_lists_tables_and_quotes_nest():
    text = (
        "1. a\n   - b\n\n     c\n2. d\n\n| x | y |\n|---|--:|\n| 1 | 2 |\n\n> - q\n>\n> r\n\n-\n- e"
    )

    assert rendered(text, width=30) == (
        "1. a\n   • b\n\n     c\n2. d\n\nx   y\n─────\n1   2\n\n▌ • q\n▌\n▌ r\n\n•\n• e\n"
    )


HOSTILE = {
    "stars": "*" * 1_000_000,
    "brackets": "[" * 20_000,
    "quotes": "\n".join(">" * n + " a" for n in range(200)),
    "deep lists": "\n".join("  " * n + "- a" for n in range(200)),
    "a wide table": "|" + "a|" * 500 + "\n|" + "-|" * 500 + "\n|" + "b|" * 500,
    "links": "![](" * 5_000,
    "a long line": "word " * 200_000,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_markdown_is_shown_and_nobody_waits_for_it(kind):
    """It took minutes, or for ever, or a line of its own for each column (no time is measured)."""
    text = HOSTILE[kind]
    stream = MarkdownStream()
    stream.feed(text[:20_000] + "\n")

    assert rendered(text)
    assert rendered(stream.finish())


@pytest.mark.timeout(60)
def test_a_long_block_that_arrives_line_by_line_is_not_parsed_for_each():
    parsed = []

    class Counting(MarkdownStream):
        def _end_of_finished(self):
            parsed.append(len(self.tail))
            return super()._end_of_finished()

    stream = Counting()
    for _ in range(5_000):
        stream.feed("- item of a list\n")

    assert len([size for size in parsed if size > 8_000]) < 20
