import os
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.tool_use import ToolOutput
from infrastructure.tools import output as module
from infrastructure.tools.output import MAX_BYTES, MAX_LINES, Capture, capped
from tests.levels import examples


def side_files(context):
    return sorted(context.side_files.iterdir()) if context.side_files.exists() else []


def test_five_million_lines_are_capped_and_kept_in_a_side_file(call, context):
    tracemalloc.start()
    output = call("bash", command="seq 1 5000000")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(output.content.encode()) <= MAX_BYTES
    assert output.content.count("\n") <= MAX_LINES
    assert output.content.startswith("1\n2\n3\n")
    assert output.content.endswith("\n4999999\n5000000\n")
    [side_file] = side_files(context)
    assert str(side_file) in output.content
    assert side_file.read_bytes() == b"".join(b"%d\n" % n for n in range(1, 5_000_001))
    assert peak < 5_000_000


def test_the_notice_tells_how_much_is_missing(context):
    lines = [f"{n}\n" for n in range(1, 3001)]

    shown = capped("".join(lines), context)

    head, _, rest = shown.partition("[… ")
    notice, _, tail = rest.partition("]\n")
    missing = 3000 - head.count("\n") - tail.count("\n")
    assert notice.startswith(f"{missing:,} lines, ")
    assert head + tail == "".join(lines[: head.count("\n")] + lines[-tail.count("\n") :])


def test_one_giant_line_keeps_its_head_and_its_tail(call, context):
    output = call("bash", command="python3 -c \"print('a' + 'é' * 500_000 + 'z', end='')\"")

    assert len(output.content.encode()) <= MAX_BYTES
    assert output.content.startswith("aé")
    assert output.content.endswith("éz")
    assert "\ufffd" not in output.content
    assert side_files(context)[0].stat().st_size == 1_000_002


@pytest.mark.parametrize(
    "text", ["", "a", "a\n" * MAX_LINES, "x" * MAX_BYTES, "é" * (MAX_BYTES // 2)]
)
def test_what_fits_is_shown_as_it_is(context, text):
    assert capped(text, context) == text
    assert side_files(context) == []


@pytest.mark.parametrize("text", ["a\n" * MAX_LINES + "b", "x" * (MAX_BYTES + 1)])
def test_one_more_is_too_much(context, text):
    shown = capped(text, context)

    assert len(shown.encode()) <= MAX_BYTES
    assert shown.count("\n") < MAX_LINES
    assert side_files(context)[0].read_text() == text


def test_output_that_is_not_text_stays_under_the_cap(call, context):
    output = call("bash", command="head -c 300000 /dev/zero | tr '\\0' '\\377'")

    assert len(output.content.encode()) <= MAX_BYTES
    assert side_files(context)[0].read_bytes() == b"\xff" * 300_000


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=examples(60),
    deadline=None,
)
@given(
    text=st.text(st.sampled_from("aé😀\n"), min_size=1, max_size=20),
    times=st.integers(1, 10_000),
    step=st.integers(1, 70_000),
)
def test_however_it_arrives_the_cap_holds_and_no_character_is_cut(context, text, times, step):
    data = (text * times).encode()

    with Capture(context) as capture:
        heard = "".join(capture.feed(data[i : i + step]) for i in range(0, len(data), step))
        heard += capture.rest()

    shown = capture.text()
    assert heard == text * times
    assert len(shown.encode()) <= MAX_BYTES
    assert shown.count("\n") + (not shown.endswith("\n")) <= MAX_LINES
    assert "\ufffd" not in shown
    if "left out here" not in shown:
        assert shown == text * times


def test_side_files_are_private_and_their_names_harmless(context):
    hostile = replace(context, tool_use_id="../../" + "x" * 300)

    capped("x\n" * 3000, hostile)
    capped("y\n" * 3000, hostile)

    first, second = side_files(context)
    assert {len(p.name) < 100 for p in (first, second)} == {True}
    assert {p.read_text()[0] for p in (first, second)} == {"x", "y"}
    assert first.stat().st_mode & 0o777 == 0o600
    assert context.side_files.stat().st_mode & 0o777 == 0o700


def test_a_side_file_has_a_limit_that_is_told(context, monkeypatch):
    monkeypatch.setattr(module, "SIDE_FILE_BYTES", 100_000)

    shown = capped("x" * 300_000, context)

    assert side_files(context)[0].stat().st_size == 100_000
    assert "Its first 100.0 KB: " in shown


def test_a_side_file_that_cannot_be_made_costs_only_itself(context):
    context.side_files.write_text("in the way")

    shown = capped("x" * 300_000, context)

    assert "could not be kept" in shown
    assert shown.startswith("xxx")


def test_a_full_disk_costs_only_the_rest_of_the_side_file(context, monkeypatch):
    write = os.write

    def full(descriptor, data):
        if module.os.fstat(descriptor).st_size > 0:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:1000])

    monkeypatch.setattr(module.os, "write", full)
    shown = capped("x" * 300_000, context)

    assert "Its first 1,000 bytes (No space left on device): " in shown


def test_results_are_always_valid_text():
    blocks = [{"type": "text", "text": "a\ud83d"}]

    assert ToolOutput("a\ud83d").content == "a\ufffd"
    assert ToolOutput(blocks).content == [{"type": "text", "text": "a\ufffd"}]
