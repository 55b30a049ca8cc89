"""Known shapes of keys and tokens, and what masks them in text: whole, or as it comes in pieces.

A shape has a beginning that its maker chose so that it can be found, and a length: ordinary code
has none of them (a test holds this repository against it). Passwords, and keys without such a
beginning, are not found; values of secret variables are (`infrastructure.secrets`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BASE64: Final = "[A-Za-z0-9+/=]"
_GAP: Final = r"(?:\s|\\[nrt]|[\"',]|\d+[\t:-])"
"""What stands between the lines of a key: as they are, numbered, or in a string."""


_BOUNDARY: Final = r"(?:(?<![A-Za-z0-9])|(?<=[0-9\[]m)|(?<=\[K))"
"""A token begins here: what stands before it is no part of a word, unless that is a colour."""


class Shape(NamedTuple):
    """What one kind of secret looks like.

    Attributes:
        name: What it is called where it is masked.
        starts: What it begins with, one of these.
        whole: All of it; the group, if there is one, is what has to go.
        growing: What may become it, up to the end of the text.
        body: A character of it: what is left out after the end of what can be held back.
    """

    name: str
    starts: tuple[str, ...]
    whole: re.Pattern[str]
    growing: re.Pattern[str]
    body: re.Pattern[str]


def _token(name: str, starts: str, rest: str, body: str = r"[\w.-]") -> Shape:
    """Return the shape of a token: one of *starts*, then *rest*, all of it of *body*."""
    alternatives = tuple(starts.split())
    start = f"{_BOUNDARY}(?:{'|'.join(map(re.escape, alternatives))})"
    return Shape(
        name,
        alternatives,
        re.compile(start + rest, re.ASCII),
        re.compile(rf"{start}{body}*\Z", re.ASCII),
        re.compile(body, re.ASCII),
    )


_PEM: Final = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END: Final = r"-----END [A-Z0-9 ]{0,40}-----"
_PRIVATE_KEY: Final = Shape(
    "private key",
    ("-----BEGIN ",),
    re.compile(
        rf"{_PEM}(?:{_GAP}|[A-Za-z-]+: [^\n\\]*)*+(?:{_BASE64}{{16,}}+{_GAP}*+)++"
        rf"(?:{_BASE64}{{1,15}}+{_GAP}*+)?(?:{_PEM_END})?"
    ),
    re.compile(
        rf"-----BEGIN [A-Z0-9 ]{{0,60}}-{{0,5}}\Z|{_PEM}(?:(?!{_PEM_END})[\w\s+/=\\:,\"'.-])*\Z"
    ),
    re.compile(r"[A-Za-z0-9+/=\s]"),
)
_AWS_SECRET: Final = Shape(
    "AWS secret key",
    ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey"),
    re.compile(
        rf"{_BOUNDARY}(?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY|SecretAccessKey)"
        r"[\"']?\s{0,20}[:=]\s{0,20}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
    ),
    re.compile(
        rf"{_BOUNDARY}(?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY|SecretAccessKey)"
        r"[\"']?\s{0,20}[:=]?\s{0,20}[\"']?[A-Za-z0-9/+]{0,41}\Z"
    ),
    re.compile("[A-Za-z0-9/+]"),
)

SHAPES: Final = (
    _PRIVATE_KEY,
    _AWS_SECRET,
    _token("AWS access key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _token("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", "[A-Za-z0-9]{36,}"),
    _token("GitHub token", "github_pat_", r"\w{60,}"),
    _token("GitLab token", "glpat- gldt- glrt- glptt- glcbt- glsoat-", r"[\w-]{20,}"),
    _token("Slack token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", r"[A-Za-z0-9-]{20,}"),
    _token(
        "Slack webhook",
        "https://hooks.slack.com/services/ https://hooks.slack.com/workflows/",
        r"[\w/-]{20,}",
        r"[\w/.-]",
    ),
    _token("Stripe key", "sk_live_ rk_live_ sk_test_ rk_test_ whsec_", "[A-Za-z0-9]{20,}"),
    _token("Anthropic key", "sk-ant-", r"[\w-]{32,}"),
    _token("OpenAI key", "sk-proj- sk-svcacct- sk-admin-", r"[\w-]{32,}"),
    _token("OpenAI key", "sk-", r"[A-Za-z0-9]{40,}"),
    _token("Google API key", "AIza", r"[\w-]{35}(?![\w-])"),
    _token("Google token", "ya29. GOCSPX-", r"[\w-]{24,}"),
    _token("npm token", "npm_", r"[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _token("PyPI token", "pypi-AgE pypi-AgN", r"[\w-]{50,}"),
    _token("Hugging Face token", "hf_", "[A-Za-z0-9]{34,}"),
    _token("SendGrid key", "SG.", r"[\w-]{22}\.[\w-]{43}"),
    _token("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", "[a-f0-9]{64}"),
    _token("JSON web token", "eyJ", r"[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{16,}"),
)

_PARTIAL: Final = frozenset(
    each[:length] for shape in SHAPES for each in shape.starts for length in range(1, len(each))
)
_BEGINS: Final = re.compile(_BOUNDARY)
_LONGEST_START: Final = max(len(each) for shape in SHAPES for each in shape.starts)
_MOST_HELD: Final = 32 * 1024
_CONTEXT: Final = 2
"""Characters before a token that say whether it begins there."""


def mark(name: str) -> str:
    """Return what stands in the place of a secret."""
    return f"[masked: {name}]"


def masked(text: str, values: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return *text* without secrets, and the names of those that were in it.

    *values* are secrets that have no shape, each with its name.
    """
    found: list[str] = []
    for value, name in values.items():
        if value in text:
            found += [name] * text.count(value)
            text = text.replace(value, mark(name))
    pieces, end = [], 0
    for start, stop, name in sorted(_spans(text)):
        if start >= end:
            pieces += [text[end:start], mark(name)]
            found.append(name)
            end = stop
    return "".join([*pieces, text[end:]]), found


def _spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where secrets begin and end in *text*, and what they are."""
    for shape, place in _starts(text):
        if match := shape.whole.match(text, place):
            yield *match.span(match.lastindex or 0), shape.name


def _starts(text: str) -> Iterator[tuple[Shape, int]]:
    """Yield where a shape may begin: to look for words is fast, for patterns it is not."""
    for shape in SHAPES:
        for start in shape.starts:
            place = text.find(start)
            while place >= 0:
                yield shape, place
                place = text.find(start, place + 1)


class Mask:
    """Masks bytes as they come, in whatever pieces: what may become a secret is held back.

    Bytes are taken for characters of Latin-1: shapes are ASCII, and nothing else is changed.

    Attributes:
        found: The names of those that were masked.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self.found: list[str] = []
        self._values = {value.encode().decode("latin-1"): name for value, name in values.items()}
        self._before = self._held = ""
        self._swallowed: re.Pattern[str] | None = None

    def feed(self, data: bytes) -> bytes:
        """Return what of *data*, and of what was held back, can be given out."""
        new = data.decode("latin-1")
        if self._swallowed is not None:
            new = self._without_rest(new)
        text = self._before + self._held + new
        place = max(self._end_of_safe(text), len(self._before))
        given = self._given(text, place)
        if len(self._held) > _MOST_HELD:
            given += self._given_up()
        return given.encode("latin-1")

    def rest(self) -> bytes:
        """Return what was held back: nothing comes any more."""
        text = self._before + self._held
        return self._given(text, len(text)).encode("latin-1")

    def _given(self, text: str, place: int) -> str:
        """Return what stands in *text* up to *place*, masked, but for what was given out before."""
        given, found = masked(text[:place], self._values)
        given = given[len(self._before) :]
        self.found += found
        self._before, self._held = text[max(place - _CONTEXT, 0) : place], text[place:]
        return given

    def _given_up(self) -> str:
        """Return what is longer than can be held: masked, and its rest is left out."""
        text, place = self._before + self._held, len(self._before)
        for shape in SHAPES:
            if shape.whole.match(text, place) and shape.growing.match(text, place):
                self._before, self._held, self._swallowed = "", "", shape.body
                self.found.append(shape.name)
                return mark(shape.name)
        return self._given(text, len(text))

    def _without_rest(self, text: str) -> str:
        assert self._swallowed is not None
        place = 0
        while place < len(text) and self._swallowed.match(text, place):
            place += 1
        if place < len(text):
            self._swallowed = None
        return text[place:]

    def _end_of_safe(self, text: str) -> int:
        """Return where what may become a secret begins; the end of *text*, if nothing may."""
        ends = [len(text)]
        ends += [place for shape, place in _starts(text) if shape.growing.match(text, place)]
        for length in range(min(_LONGEST_START, len(text)), 0, -1):
            start = len(text) - length
            may_begin = text[start] == "-" or _BEGINS.match(text, start)
            if may_begin and text[start:] in _PARTIAL:
                ends.append(start)
                break
        for value in self._values:
            for length in range(min(len(value) - 1, len(text)), 0, -1):
                if text.endswith(value[:length]):
                    ends.append(len(text) - length)
                    break
        end = min(ends)
        return min([end, *(start for start, stop, _ in _spans(text) if start < end < stop)])
