"""What a file's bytes say, and how to say something else in the same encoding (case R14).

What a file is in, it stays in. Where that is not certain, text is shown by the likeliest encoding
and the guess is named, and only what means the same in all of them may be changed.
"""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple

from infrastructure.errors import ToolError

_BOMS: Final = (  # UTF-32 first: its mark begins like that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
BOMS: Final = tuple(bom for bom, _ in _BOMS)
_LEGACY: Final = ("gb18030", "big5", "cp932", "euc_jp", "euc_kr", "cp1252", "latin_1")
_ESCAPED: Final = re.compile("[\udc80-\udcff]")
_SNIFFED: Final = 8 * 1024
_SAMPLE: Final = 256 * 1024
_MARGIN: Final = 0.05
"""How much less chaotic than another one a reading has to be, to be certain."""
_TELLING: Final = 10
"""How many wide characters tell a language."""
_SHARES: Final = {
    "gb18030": ("\u3040", "\u30ff", 0.0, 0.1),
    "big5": ("\u3040", "\u30ff", 0.0, 0.1),
    "euc_kr": ("\uac00", "\ud7a3", 0.5, 1.0),
    "cp932": ("\uff61", "\uff9f", 0.0, 0.5),
}
"""Between which shares of them some characters are: kana, hangul, halfwidth kana."""


class Text(NamedTuple):
    """The text of a file.

    Attributes:
        text: It, without a mark of its byte order. Bytes that mean nothing are lone surrogates,
            as ``surrogateescape`` makes them.
        encoding: What it is in; None if that is not certain: then all bytes above 127 are escaped.
        bom: The mark at its beginning, if there is one.
        guesses: What it may be in, the likeliest first, if that is not certain.
    """

    text: str
    encoding: str | None = "utf-8"
    bom: bytes = b""
    guesses: tuple[str, ...] = ()

    def encoded(self, text: str, path: object) -> bytes:
        """Return *text* as this file has it: in its encoding, with its mark.

        Raises:
            ToolError: The encoding has not all of its characters, or is not certain.
        """
        text = text.removeprefix("\ufeff") if self.bom else text
        codec = self.encoding or "ascii"
        errors = "surrogateescape" if codec in ("utf-8", "ascii") else "strict"
        try:
            return self.bom + text.encode(codec, errors)
        except UnicodeEncodeError as error:
            raise ToolError(self._why_not(error.object[error.start], path)) from None

    def _why_not(self, character: str, path: object) -> str:
        if self.encoding is None:
            return (
                f"{path} is not UTF-8, and what it is in is not certain{self.maybe}: only ASCII "
                f"can be written there without harm, and {character!r} is none. Convert it to "
                f"UTF-8 first (iconv), if that is wanted. Nothing was changed."
            )
        return (
            f"{path} is in {self.encoding}, which has no {character!r}. Use other characters, or "
            f"convert it to UTF-8 first (iconv), if that is wanted. Nothing was changed."
        )

    @property
    def maybe(self) -> str:
        """What the file may be in, in brackets; nothing if nobody knows."""
        return f" (it may be {' or '.join(self.guesses)})" if self.guesses else ""

    def shown(self) -> tuple[str, str]:
        """Return the text for a reader, and a remark on its encoding if it is not plain UTF-8."""
        if self.encoding == "utf-8":
            return self.text.encode(errors="surrogateescape").decode(errors="replace"), ""
        if self.encoding is not None:
            return self.text, f"This file is in {self.encoding}; it stays so when it is changed."
        data = self.text.encode("ascii", "surrogateescape")
        guess = self.guesses[0] if self.guesses else "utf-8"
        return data.decode(guess, "replace"), (
            f"This file is not UTF-8; what it is in is not certain{self.maybe}. It is shown as "
            f"{guess}, and only ASCII in it can be edited."
        )


def decode(data: bytes, path: object) -> Text:
    """Return the text of *data*, the content of *path*.

    Raises:
        ToolError: It is binary, or breaks off where its mark says that it is UTF-16 or UTF-32.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _marked(data, bom, encoding, path)
    if b"\0" in data[:_SNIFFED]:
        raise ToolError(f"{path} is binary ({len(data):,} bytes), no text.")
    text = data.decode(errors="surrogateescape")
    odd = len(_ESCAPED.findall(text))
    if odd == 0 or sum(not c.isascii() for c in text) > 2 * odd:
        return Text(text)  # UTF-8, with a damaged byte here and there at most
    return _legacy(data)


def _marked(data: bytes, bom: bytes, encoding: str, path: object) -> Text:
    try:
        errors = "surrogateescape" if encoding == "utf-8" else "strict"
        return Text(data[len(bom) :].decode(encoding, errors), encoding, bom)
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{path} begins like {encoding}, but cannot be decoded as that ({error.reason} at "
            f"byte {error.start + len(bom):,})."
        ) from None


def _legacy(data: bytes) -> Text:
    """Return the text of what is no UTF-8, if one reading of it is clearly better than others."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 - few files need it

    matches = list(from_bytes(data[:_SAMPLE], cp_isolation=list(_LEGACY)))
    readings = {m.encoding: text for m in matches if (text := _reading(data, m.encoding))}
    matches = [m for m in matches if m.encoding in readings]
    if plausible := [m for m in matches if _is_plausible(readings[m.encoding], m.encoding)]:
        matches = plausible
    if matches:
        best = max(matches, key=lambda match: (match.coherence, -match.chaos))
        rivals = [
            match
            for match in matches
            if readings[match.encoding] != readings[best.encoding]
            and match.chaos < best.chaos + _MARGIN
        ]
        if not rivals:
            return Text(readings[best.encoding], best.encoding)
    guesses = tuple(match.encoding for match in matches)
    return Text(data.decode("ascii", "surrogateescape"), None, guesses=guesses)


def _reading(data: bytes, encoding: str) -> str | None:
    """Return *data* as text if that leads back to the same bytes."""
    try:
        text = data.decode(encoding)
        return text if text.encode(encoding) == data else None
    except UnicodeError:
        return None


def _is_plausible(text: str, encoding: str) -> bool:
    """Tell whether a longer text has the letters of a language that is written in *encoding*."""
    wide = [char for char in text[:_SAMPLE] if char > "\u2e80"]
    if len(wide) < _TELLING:
        return True
    first, last, least, most = _SHARES.get(encoding, ("", "", 0.0, 1.0))
    return least <= sum(first <= char <= last for char in wide) / len(wide) <= most


def lines_of(text: str) -> list[str]:
    """Return the lines of *text* with their ends; only a newline ends one (case E1)."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
