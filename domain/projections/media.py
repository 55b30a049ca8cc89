"""Images and documents in a request: what the API takes of them, as arithmetic.

The limits are published, so no refusal is needed to know them. A medium beyond them is replaced by
a line that says so. If all media together are too many, the oldest half is left out at once: then
the API's cache has to begin again for one request in dozens, not for each.
"""

from __future__ import annotations

import base64
import re
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from domain.images import HEADER_BYTES, identify

if TYPE_CHECKING:
    from domain.messages import JsonObject

MAX_IMAGE_BYTES = 5 * 1024 * 1024
"""Of one image, as base64."""
MAX_SIDE = 8_000
"""Pixels of the longer side of an image."""
MANY_IMAGES, MAX_SIDE_OF_MANY = 20, 2_000
"""With more images than this in a request, their sides may have so many pixels."""
MAX_MEDIA = 100
MAX_PAGES = 100
MAX_BYTES = 24 * 1024 * 1024
"""Of all media in a request, which may have 32 MB: the rest is for text."""

_URL = re.compile(r"https?://\S+")
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_PAGES = re.compile(rb"/Count\s+(\d{1,6})")


class Medium(NamedTuple):
    """An image or a document that the API takes, by itself, and what it counts."""

    block: JsonObject
    bytes: int
    pages: int = 0
    side: int = 0

    @property
    def name(self) -> str:
        """What it is, for a sentence."""
        return "An image" if self.block["type"] == "image" else "A document"


class Plan(NamedTuple):
    """Which media of a request are left out: those before the *first*, and large ones of many."""

    first: int = 0
    are_many: bool = False


class Media:
    """Places the media of a request by a plan, and finds out which plan it should have been.

    Attributes:
        plan: The plan that fits the media placed so far; they may have been placed by another.
    """

    def __init__(self, begun_with: Plan) -> None:
        self.plan = Plan()
        self._begun_with = begun_with
        self._number = 0
        self._kept: deque[tuple[int, Medium]] = deque()

    @property
    def is_as_planned(self) -> bool:
        """Whether the plan that was begun with is still the right one."""
        return self.plan == self._begun_with

    def placed(self, raw: JsonObject, *, is_withheld: bool) -> JsonObject | None:
        """Return the image or document *raw* as it is sent: itself, or a text in its place.

        None for a block that is neither in a shape that the API knows.
        """
        medium = _medium(raw["type"], raw.get("source"))
        if medium is None:
            return None
        why = "the API refused it" if is_withheld else _too_much(medium)
        if why is None:
            number, self._number = self._number, self._number + 1
            self._count(number, medium)
            why = self._not_planned(number, medium)
        if why is None:
            return medium.block
        return {"type": "text", "text": f"({medium.name} is left out here: {why}.)"}

    def _not_planned(self, number: int, medium: Medium) -> str | None:
        if number < self._begun_with.first:
            return "those that came after it are as many as the API takes"
        if self._begun_with.are_many and medium.side > MAX_SIDE_OF_MANY:
            many = f"{MAX_SIDE_OF_MANY} pixels, the most that the API takes of many images"
            return f"it is larger than {many}"
        return None

    def _count(self, number: int, medium: Medium) -> None:
        """Fold one more medium into the plan. Both parts of a plan only ever grow."""
        kept = self._kept
        kept.append((number, medium))
        first, are_many = self.plan
        are_many = are_many or sum(each.side > 0 for _, each in kept) > MANY_IMAGES
        if are_many:
            kept = deque(item for item in kept if item[1].side <= MAX_SIDE_OF_MANY)
        if _is_over(kept, 1):
            while len(kept) > 1 and _is_over(kept, 2):
                kept.popleft()
            first = kept[0][0]
        self._kept, self.plan = kept, Plan(first, are_many)


def _is_over(kept: deque[tuple[int, Medium]], share: int) -> bool:
    """Whether *kept* are more than that share (1: all, 2: half) of what a request may hold."""
    media = [medium for _, medium in kept]
    return (
        len(media) > MAX_MEDIA // share
        or sum(medium.pages for medium in media) > MAX_PAGES // share
        or sum(medium.bytes for medium in media) > MAX_BYTES // share
    )


def _too_much(medium: Medium) -> str | None:
    """Return why the API takes *medium* in no request at all; None if it does."""
    if medium.block["type"] == "image" and medium.bytes > MAX_IMAGE_BYTES:
        return "it has more than 5 MB, the most that the API takes"
    if medium.bytes > MAX_BYTES:
        return "it has more bytes than fit a request"
    if medium.side > MAX_SIDE:
        return f"it is larger than {MAX_SIDE} pixels, the most that the API takes"
    if medium.pages > MAX_PAGES:
        return f"it has more than {MAX_PAGES} pages, the most that the API takes"
    return None


def _medium(kind: str, source: Any) -> Medium | None:
    """Return the medium in *source*, with no key that the API does not know there."""
    match source:
        case {"type": "base64", "media_type": str(media_type), "data": str(data)}:
            return _of_base64(kind, media_type, data)
        case {"type": "text", "data": str(data)} if kind == "document" and data.strip():
            source = {"type": "text", "media_type": "text/plain", "data": data}
            return Medium({"type": kind, "source": source}, len(data.encode()))
        case {"type": "url", "url": str(url)} if _URL.fullmatch(url):
            source = {"type": "url", "url": url}
            return Medium({"type": kind, "source": source}, len(url), side=kind == "image")
        case _:
            return None


def _of_base64(kind: str, media_type: str, data: str) -> Medium | None:
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        return None
    types = _IMAGE_TYPES if kind == "image" else ("application/pdf",)
    if not raw or media_type not in types:
        return None
    source = {"type": "base64", "media_type": media_type, "data": data}
    if kind == "document":
        return Medium({"type": kind, "source": source}, len(data), pages=_page_count(raw))
    image = identify(raw[:HEADER_BYTES])
    if image is not None and image.media_type != media_type:  # the API compares them
        source = source | {"media_type": image.media_type}
    side = max(image.pixels) if image is not None and image.pixels else 1
    return Medium({"type": kind, "source": source}, len(data), side=side)


def _page_count(pdf: bytes) -> int:
    """Return how many pages a PDF seems to have; compressed ones do not all show."""
    counts = [int(count) for count in _PAGES.findall(pdf)]
    return max([len(_PAGE.findall(pdf)), *counts]) if pdf.startswith(b"%PDF") else 0
