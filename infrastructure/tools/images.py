"""Images that a model can be shown: whole, and within the limits that the API publishes.

One that the API refuses would fail every later request too (cases I4, R1), so a file is decoded
to its end before it is taken.
"""

from __future__ import annotations

import base64
import warnings
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from domain.images import identify
from domain.sizes import size
from infrastructure.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES: Final = 5 * 1024 * 1024
"""What the API takes of one image, counted in base64."""

_MOST_PIXELS: Final = 8000
_FORMATS: Final = {
    "image/png": "PNG",
    "image/gif": "GIF",
    "image/jpeg": "JPEG",
    "image/webp": "WEBP",
}
_MOST_DECODED: Final = 128_000_000
"""Pixels of an animation that are decoded; a small file can claim any number of frames."""


def blocks(path: Path, data: bytes, length: int) -> list[dict[str, Any]]:
    """Return the blocks that show the image *data*, of a file of *length* bytes, to a model.

    Raises:
        ToolError: The API would refuse it: it is too large, or cannot be decoded to its end.
    """
    if length * 4 / 3 > MOST_BYTES:
        raise ToolError(
            f"{path} is an image of {size(length)}, too large to be shown (5 MiB as base64, so "
            f"about 3.9 MB). Make a smaller copy and read that.",
        )
    image = identify(data)
    if image is None or image.pixels is None:
        raise ToolError(f"{path} starts like an image but is no image that can be read.")
    width, height = image.pixels
    if max(width, height) > _MOST_PIXELS:
        raise ToolError(
            f"{path} is {width} x {height} pixels; at most {_MOST_PIXELS} a side can be shown. "
            f"Make a smaller copy and read that.",
        )
    if problem := _damage(data, image.media_type):
        raise ToolError(
            f"{path} is a damaged image, which cannot be shown: {problem}. Get the file again, or "
            f"convert it, and read that.",
        )
    source = {
        "type": "base64",
        "media_type": image.media_type,
        "data": base64.b64encode(data).decode(),
    }
    note = f"{path.name}: {image.media_type}, {width} x {height} pixels, {size(len(data))}"
    return [{"type": "text", "text": note}, {"type": "image", "source": source}]


def _damage(data: bytes, media_type: str) -> str:
    """Return why *data* cannot be decoded to its end; "" if it can."""
    if not _has_end(data, media_type):
        return "its end is missing"
    try:
        _decode(data, media_type)
    except Exception as error:  # noqa: BLE001 - Pillow's decoders raise whatever they met
        return str(error).rstrip(".") or type(error).__name__
    return ""


def _has_end(data: bytes, media_type: str) -> bool:
    """Tell whether the end that the format asks for is there: Pillow does without it."""
    match media_type:
        case "image/png":
            return b"IEND\xaeB`\x82" in data
        case "image/jpeg":
            return data.rfind(b"\xff\xd9") > data.rfind(b"\xff\xda")
        case "image/gif":
            return data.rstrip(b"\0").endswith(b";")
        case _:  # without all of a WebP, Pillow decodes none of it
            return True


def _decode(data: bytes, media_type: str) -> None:
    from PIL import Image, ImageSequence  # noqa: PLC0415 - only where there is an image

    formats = [_FORMATS[media_type]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow only warns of, the API may take
        with Image.open(BytesIO(data), formats=formats) as image:
            image.verify()
        with Image.open(BytesIO(data), formats=formats) as image:
            room = _MOST_DECODED
            for frame in ImageSequence.Iterator(image):
                frame.load()
                room -= frame.width * frame.height
                if room < 0:
                    break
