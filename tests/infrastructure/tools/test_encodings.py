"""What a file is in, it stays in, or the call is refused with the reason (case R14)."""

import codecs

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infrastructure.errors import ToolError
from infrastructure.tools.encodings import decode
from tests.levels import examples

CHINESE = "# 这是一个配置文件，请不要修改。\nname = one\n" * 5
TAIWANESE = "# 這是一個設定檔，請不要修改。\nname = one\n" * 5
JAPANESE = "# これは設定ファイルです。変更しないでください。\nname = one\n" * 5
KOREAN = "# 설정 파일입니다. 수정하지 마십시오.\nname = one\n" * 5
GERMAN = "// Größe des Fensters über alles\nname = one\n" * 5
CERTAIN = {
    "gb18030": CHINESE,
    "big5": TAIWANESE,
    "cp932": JAPANESE,
    "euc_jp": JAPANESE,
    "euc_kr": KOREAN,
    "cp1252": GERMAN,
}
MARKED = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
ALL = {name: (b"", text) for name, text in CERTAIN.items()} | {
    name: (bom, CHINESE) for name, bom in MARKED.items()
}


@pytest.fixture
def path(context):
    return context.cwd / "a.txt"


@pytest.mark.parametrize("encoding", ALL)
def test_a_file_is_read_edited_and_written_in_its_encoding(call, path, encoding):
    bom, text = ALL[encoding]
    comment = text.split("\n")[0]
    path.write_bytes(bom + text.encode(encoding))

    read = call("read", path="a.txt").content
    assert read.startswith(text)
    assert ("This file is in" in read) == (encoding != "utf-8")

    # The first line alone is unique.
    both = f"{comment}\nname = one\n{comment}\nname = one\n{comment}\nname = one\n{comment}\n"
    edits = [{"old_text": f"{both}name = one\n", "new_text": f"{both}name = two\n"}]
    assert call("edit", path="a.txt", edits=edits).is_error  # it is there twice
    path.write_bytes(bom + (text + "name = last\n").encode(encoding))
    edits = [{"old_text": "name = last", "new_text": f"name = {comment[2:6]}"}]
    assert not call("edit", path="a.txt", edits=edits).is_error
    assert path.read_bytes() == bom + f"{text}name = {comment[2:6]}\n".encode(encoding)

    assert not call("write", path="a.txt", content=comment).is_error
    assert path.read_bytes() == bom + comment.encode(encoding)
    if bom:  # some models repeat the mark, which stands there once
        call("write", path="a.txt", content=f"\ufeff{comment}")
        assert path.read_bytes() == bom + comment.encode(encoding)


@pytest.mark.parametrize("line", ["使用者名稱和密碼不能為空", "錯誤：找不到指定的檔案或目錄"])
def test_chinese_is_not_taken_for_halfwidth_japanese(line):
    data = f"# {line}\nname = one\n".encode("big5")

    assert decode(data, "a.txt")[:2] == (data.decode("big5"), "big5")


def test_two_ways_to_write_a_character_are_kept_apart():
    """In cp932 some have two: to read one and to write the other would change the file."""
    data = JAPANESE.encode("cp932") + b"\x87\x90 \x81\xe0\n"
    text = decode(data, "a.txt")

    assert data.decode("cp932").encode("cp932") != data
    assert text.encoded(text.text, "a.txt") == data


def test_a_nul_in_the_first_8_kib_is_binary():
    with pytest.raises(ToolError, match=r"a.txt is binary \(8,192 bytes\), no text"):
        decode(b"a" * 8_191 + b"\0", "a.txt")

    assert decode(b"a" * 8_192 + b"\0", "a.txt").text.endswith("a\0")


@pytest.mark.parametrize("encoding", [name for name in CERTAIN if name != "gb18030"])
def test_what_an_encoding_does_not_have_is_refused(call, path, encoding):
    before = CERTAIN[encoding].encode(encoding) + b"name = last\n"
    path.write_bytes(before)
    edits = [{"old_text": "name = last", "new_text": "\N{ROCKET}"}]

    for output in (
        call("edit", path="a.txt", edits=edits),
        call("write", path="a.txt", content="\N{ROCKET}"),
    ):
        assert output.is_error
        assert f"is in {encoding}, which has no '\N{ROCKET}'" in output.content
    assert path.read_bytes() == before


@pytest.mark.parametrize("data", ["Привет, мир\n".encode("koi8_r"), "你好\n".encode("gb18030")])
def test_where_it_is_not_certain_only_ascii_is_changed(call, path, data):
    before = data + b"name = one\n"
    path.write_bytes(before)
    read = call("read", path="a.txt").content

    refused = [{"old_text": "one", "new_text": "é"}]
    assert "not certain" in read
    assert "not certain" in call("edit", path="a.txt", edits=refused).content
    seen = [{"old_text": read[:2], "new_text": "x"}]
    assert "not certain" in call("edit", path="a.txt", edits=seen).content
    assert "not certain" in call("write", path="a.txt", content="é").content
    assert path.read_bytes() == before

    assert not call("edit", path="a.txt", edits=[{"old_text": "one", "new_text": "2"}]).is_error
    assert path.read_bytes() == data + b"name = 2\n"


def test_half_a_character_is_no_place_for_an_edit(call, path):
    path.write_bytes(before := "ソ\n".encode("cp932"))  # whose second byte is a backslash

    assert call("edit", path="a.txt", edits=[{"old_text": "\\", "new_text": "/"}]).is_error
    assert path.read_bytes() == before
    path.write_bytes(before := "表a\n".encode("cp932"))  # as before: its second byte is a backslash
    assert call("edit", path="a.txt", edits=[{"old_text": "\\a", "new_text": "/"}]).is_error
    assert path.read_bytes() == before


def test_utf8_with_a_damaged_byte_is_still_utf8(call, path):
    path.write_bytes("é\nü ö ä\n".encode() + b"\xff one\n")

    call("edit", path="a.txt", edits=[{"old_text": "one", "new_text": "é"}])

    assert path.read_bytes() == "é\nü ö ä\n".encode() + b"\xff \xc3\xa9\n"


def test_utf16_that_breaks_off_is_refused(call, path):
    path.write_bytes(before := codecs.BOM_UTF16_LE + b"a")

    for output in (
        call("read", path="a.txt"),
        call("edit", path="a.txt", edits=[{"old_text": "a", "new_text": "b"}]),
        call("write", path="a.txt", content="b"),
    ):
        assert "cannot be decoded" in output.content
        assert "at byte 2)" in output.content
    assert path.read_bytes() == before


def test_line_ends_stay_what_all_of_them_are(call, path):
    path.write_bytes(b"one\r\ntwo\r\n")

    call("write", path="a.txt", content="1\n2\n3\n")
    assert path.read_bytes() == b"1\r\n2\r\n3\r\n"
    call("write", path="a.txt", content="1\r\n2\n")  # it says itself how they end
    assert path.read_bytes() == b"1\r\n2\n"

    path.write_bytes(b"one\r\ntwo\n")
    call("write", path="a.txt", content="1\n2\n")
    assert path.read_bytes() == b"1\n2\n"


@given(st.binary(max_size=400) | st.text(max_size=100).map(lambda t: t.encode("utf-8", "replace")))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(60))
def test_whatever_is_read_leads_back_to_the_same_bytes(data):
    try:
        text = decode(data, "a.txt")
    except ToolError:
        return
    assert text.encoded(text.text, "a.txt") == data
