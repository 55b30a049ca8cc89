"""What can be told of an image from its first bytes: its type and its size in pixels."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

# Enough for the metadata that cameras put before a JPEG's frame header.
HEADER_BYTES: Final = 256 * 1024

_JPEG_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_WITHOUT_LENGTH: Final = frozenset({0x01, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class Image:
    """Type and size of an image; the size is None if its header does not tell."""

    media_type: str
    pixels: tuple[int, int] | None


def identify(data: bytes) -> Image | None:
    """Return what *data*, the start of a file, says it is, or None if it is no image we know."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return Image("image/png", _at(data, 16, ">II"))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return Image("image/gif", _at(data, 6, "<HH"))
    if data.startswith(b"\xff\xd8\xff"):
        return Image("image/jpeg", _jpeg(data))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return Image("image/webp", _webp(data))
    return None


def _at(data: bytes, offset: int, form: str) -> tuple[int, int] | None:
    try:
        first, second = struct.unpack_from(form, data, offset)
    except struct.error:
        return None
    return (first, second) if first and second else None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """Walk the segments to the frame header, which alone has the size."""
    offset = 2
    while offset + 4 <= len(data) and data[offset] == 0xFF:  # noqa: PLR2004
        marker = data[offset + 1]
        if marker in _JPEG_FRAMES:
            size = _at(data, offset + 5, ">HH")
            return size and (size[1], size[0])
        if marker == 0xFF:  # noqa: PLR2004 - a fill byte
            offset += 1
        elif marker in _JPEG_WITHOUT_LENGTH:
            offset += 2
        else:
            offset += 2 + int.from_bytes(data[offset + 2 : offset + 4])
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 ":
            size = _at(data, 26, "<HH")
            return size and (size[0] & 0x3FFF, size[1] & 0x3FFF)
        case b"VP8L" if len(data) >= 25:  # noqa: PLR2004
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X" if len(data) >= 30:  # noqa: PLR2004
            width, height = data[24:27], data[27:30]
            return int.from_bytes(width, "little") + 1, int.from_bytes(height, "little") + 1
        case _:
            return None
