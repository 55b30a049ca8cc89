import os
import struct
import zlib
from pathlib import Path

import pytest

from domain.images import identify
from infrastructure.tools.output import MAX_BYTES


def png(width, height, *, padding=0):
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = zlib.compress(b"\0" * (width // 8 + 2) * min(height, 10))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", rows + b"\0" * padding) + chunk(b"IEND", b"")
    )


HEADERS = {
    "image/png": png(3, 2),
    "image/gif": b"GIF89a" + struct.pack("<HH", 3, 2) + b"\0" * 20,
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc0\x00\x11\x08"
    + struct.pack(">HH", 2, 3)
    + b"\0" * 20,
    "image/webp": b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + b"\2\0\0\1\0\0" + b"\0" * 20,
}
WEBPS = [
    b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 10 + struct.pack("<HH", 3, 2),
    b"RIFF\0\0\0\0WEBPVP8L" + b"\0\0\0\0\x2f" + (2 | 1 << 14).to_bytes(4, "little"),
]


def test_text_is_returned_as_it_is(call, context):
    text = "a\u2028b\x85c\x0cd\r\n\te\n\nlast"
    (context.cwd / "a.txt").write_bytes(text.encode())

    output = call("read", path="a.txt")

    assert (output.content, output.is_error) == (text, False)


@pytest.mark.parametrize(
    ("data", "content"),
    [
        (b"", "(empty file)"),
        (b"\xef\xbb\xbf", "(empty file)"),
        (b"\n\n", "(only blank lines)"),
        (b"\xef\xbb\xbfmarked\n", "marked\n"),
        (b"caf\xe9\n", "café\n\n[This file is in cp1252; it stays so when it is changed.]"),
    ],
)
def test_odd_text(call, context, data, content):
    (context.cwd / "a.txt").write_bytes(data)

    assert call("read", path="a.txt").content == content


def test_offset_and_limit_choose_lines_and_a_footer_goes_on(call, context):
    (context.cwd / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))

    output = call("read", path="a.txt", offset=3, limit=2)

    assert output.content == ("line 3\nline 4\n\n[Lines 3-4 of 10. Go on with offset=5]")
    assert call("read", path="a.txt", offset=9, limit=2).content == "line 9\nline 10\n"
    assert call("read", path="a.txt", offset=10).content == "line 10\n"


@pytest.mark.parametrize(
    ("text", "lines"), [("a\nb\n", "2 lines"), ("a\nb", "2 lines"), ("a", "1 line")]
)
def test_an_offset_past_the_end_tells_where_the_end_is(call, context, text, lines):
    (context.cwd / "a.txt").write_text(text)

    output = call("read", path="a.txt", offset=3)

    assert output.is_error
    assert output.content.endswith(f"has {lines}.")


def test_a_long_file_can_be_read_page_by_page_without_loss(call, context):
    text = "".join(f"{n} {'é' * (n % 90)}\n" for n in range(1, 9001))
    (context.cwd / "a.txt").write_text(text)

    read, offset = "", 1
    while True:
        content = call("read", path="a.txt", offset=offset).content
        page, footer, end = content.rpartition("\n[Lines ")
        assert len(page.encode()) <= MAX_BYTES
        if not footer:
            read += content
            break
        read += page
        offset = int(end.rpartition("offset=")[2].rstrip("]"))

    assert read == text


@pytest.mark.parametrize("rest", [b"", b"\nnext\n"])
def test_one_giant_line_is_shown_in_part(call, context, rest):
    (context.cwd / "a.txt").write_bytes("é".encode() * 500_000 + rest)

    output = call("read", path="a.txt")

    assert output.content.startswith("éé")
    assert "Line 1 is longer than 50 KiB" in output.content
    assert len(output.content.encode()) <= MAX_BYTES
    if rest:
        assert call("read", path="a.txt", offset=2).content == "next\n"


def test_a_big_file_far_from_its_start(call, context):
    with (context.cwd / "a.txt").open("w") as file:
        file.writelines(f"{n}\n" for n in range(1, 1_000_001))

    assert call("read", path="a.txt", offset=999_999).content == "999999\n1000000\n"


@pytest.mark.parametrize("data", WEBPS)
def test_the_other_webps_tell_their_size_too(data):
    assert identify(data).pixels == (3, 2)


@pytest.mark.parametrize(
    "data", [data[:n] for data in [*HEADERS.values(), *WEBPS] for n in range(40)]
)
def test_a_truncated_header_is_no_accident(data):
    image = identify(data)

    assert image is None or image.pixels in {None, (3, 2)}


def test_lines_can_be_numbered(call, context):
    (context.cwd / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))

    output = call("read", path="a.txt", offset=9, numbers=True)

    assert output.content == "     9\tline 9\n    10\tline 10\n"


def test_a_file_that_is_too_large_to_be_counted_is_read_all_the_same(call, context):
    with (context.cwd / "a.txt").open("w") as file:
        file.writelines(f"{n:020}\n" for n in range(1, 1_000_001))

    output = call("read", path="a.txt", offset=999_000, limit=2)

    assert output.content.startswith(f"{999_000:020}\n{999_001:020}\n\n[Lines 999,000-999,001 of ")
    page, note = call("read", path="a.txt").content.split("\n\n[Lines 1-")
    assert page.endswith(f"\n{int(note.split(' ')[0].replace(',', '')):020}")
    assert "is past the end" in call("read", path="a.txt", offset=2_000_000).content


def test_a_file_is_known_whole_only_if_all_of_it_was_shown(call, context):
    (context.cwd / "a.txt").write_text("one\ntwo\n")

    assert list(call("read", path="a.txt").seen) == [str(context.cwd / "a.txt")]
    assert call("read", path="a.txt", offset=2).seen == {}
    assert call("read", path="a.txt", limit=1).seen == {}


def test_what_is_not_text_is_an_error(call, context):
    (context.cwd / "a.bin").write_bytes(b"\x7fELF\0\0")
    (context.cwd / "folder").mkdir()

    assert "binary" in call("read", path="a.bin").content
    assert "is a directory" in call("read", path="folder").content
    assert call("read", path="folder").is_error
    assert call("read", path="").is_error
    assert call("read", path="a\0b").is_error


def test_pipes_and_devices_are_not_waited_for(call, context):
    os.mkfifo(context.cwd / "pipe")

    for path in ("pipe", "/dev/zero", "/dev/tty"):
        output = call("read", path=path)
        assert output.is_error
        assert "not a regular file" in output.content


def test_a_missing_file_comes_with_names_like_it(call, context):
    (context.cwd / "README.md").touch()
    (context.cwd / "src").mkdir()

    assert "Did you mean README.md?" in call("read", path="readme.md").content
    assert "Did you mean README.md?" in call("read", path="REDME.md").content
    assert call("read", path="zzz").content.endswith("zzz does not exist.")
    assert call("read", path="src/deep/er/x").content.endswith(f"does: {context.cwd / 'src'}")
    assert call("read", path="README.md/x").content.endswith(f"does: {context.cwd / 'README.md'}")


def test_home_is_expanded(call, context, monkeypatch):
    monkeypatch.setenv("HOME", str(context.cwd))
    (context.cwd / "a.txt").write_text("home\n")

    assert call("read", path="~/a.txt").content == "home\n"
    assert call("read", path="~nobody-of-this-name/a.txt").is_error


def test_a_lone_surrogate_in_a_path_is_an_error_in_valid_text(call):
    output = call("read", path="a\ud83d")

    assert output.is_error
    output.content.encode()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_files_that_claim_to_be_empty_are_read(call):
    assert "Name:" in call("read", path="/proc/self/status").content
