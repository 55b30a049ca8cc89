"""Which variables hold secrets, and the one gate that keeps secrets out of texts.

Whatever text of an error is shown, printed as JSON or recorded passes `redacted`: texts of servers
and libraries quote keys, headers and addresses, whole or in part. What tools print is masked by the
known shapes and by `values_in_outputs` alone: it may be code, and code has to stay as it is.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from domain.text import valid

if TYPE_CHECKING:
    from collections.abc import Mapping

_OF_KEYS = (
    "access|account|admin|anthropic|api|app|auth|aws|azure|claude|client|deploy|encryption|gemini|"
    "github|gitlab|google|gpg|groq|host|license|master|mistral|my|openai|pgp|private|pub|public|"
    "secret|server|service|session|shared|signing|ssh|storage|stripe|user|x"
)
"""What is written together with "key". Other words that end so name none: monkey, turkey."""
_SECRET_WORD = re.compile(
    rf"(?:{_OF_KEYS})*keys?|\w*(?:token|secrets?|passw\w*|passphrase|credentials?|cookies?)"
    r"|(?:db|ftp|my|pg|root|smtp|user)?pass|authorization|signing|private"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_OTHER_SECRET = re.compile(r"_auth$|custom_?headers", re.IGNORECASE)
_NO_SECRETS = re.compile(r"_file$|_path$|_dir$|tokens|tokenizers|_url$|_sock$", re.IGNORECASE)

_SHORTEST = 6
"""A value of fewer characters is no secret, and many a word."""

_LONG, _PIECE = 16, 8
"""Of a long secret so many characters in a row are a part of it, and no chance."""

HIDDEN = "[secret]"
_SHAPES = (
    re.compile(r"(?<![A-Za-z0-9])(?:sk|pk|rk)-[\w*.…-]{4,}"),
    re.compile(
        r"(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA|AIza)[\w-]{8,}"
    ),
    re.compile(r"eyJ[\w-]{6,}\.[\w-]+(?:\.[\w-]*)?"),
    re.compile(
        r"(?<=\bBearer )(?!\[)(?=\S*\d)[^\s'\"<>,;]+|(?<=\bBasic )[A-Za-z0-9+/=]{8,}", re.IGNORECASE
    ),
    re.compile(
        r"(?<=x-api-key)(['\"]?\s*[:=]\s*(?:b(?=['\"]))?['\"]?)(?!\[)[^\s'\"<>,;}]+", re.IGNORECASE
    ),
    re.compile(
        r"(?<=authorization)(['\"]?\s*[:=]\s*(?:b(?=['\"]))?['\"]?)(?!Bearer|Basic|\[)[^\s'\"<>,;}]+",
        re.IGNORECASE,
    ),
)
_USERINFO = re.compile(r"(?<=://)[^\s/@'\"<>]*:?[^\s/'\"<>]*@")
_QUERY = re.compile(r"([?&;](\w[\w.-]*)=)([^&\s'\"<>#;]+)")


def is_secret(name: str) -> bool:
    """Whether the environment variable *name* holds a secret, or a program would think so."""
    return names_secret(name) and _NO_SECRETS.search(name) is None


def names_secret(name: str) -> bool:
    """Whether *name* speaks of a secret, be it only of the place where one is.

    That is for whole words: between underscores, hyphens, digits and the humps of camelCase.
    """
    words = (word.lower() for word in _WORD.findall(name))
    return any(map(_SECRET_WORD.fullmatch, words)) or _OTHER_SECRET.search(name) is not None


def redacted(text: str) -> str:
    """Return *text* without secrets: a variable's value is replaced by the variable's name."""
    from infrastructure.secret_shapes import masked  # noqa: PLC0415 - patterns take 8 ms to compile

    for value, name in sorted(_secrets(os.environ).items(), key=lambda item: -len(item[0])):
        if value in text:
            text = text.replace(value, f"[{name}]")
        if len(value) >= _LONG and not re.search(r"\s|://", value):
            text = _without_pieces(text, value, name)
    text = _USERINFO.sub(f"{HIDDEN}@", text)
    text = _QUERY.sub(_without_value, text)
    for shape in _SHAPES:
        text = shape.sub(lambda match: "".join((*match.groups(), HIDDEN)), text)
    return masked(text, {})[0]


def values_in_outputs() -> dict[str, str]:
    """Return the secrets of the environment that are masked in what tools print, with their names.

    Those that a tool may print, and that nobody would write by chance: long, without a blank, and
    with a digit. ``PASSWORD=postgres`` is a word of many programs.
    """
    return {
        value: name
        for name, value in os.environ.items()
        if len(value) >= _LONG
        and is_secret(name)
        and value.isascii()
        and re.search(r"\s|://", value) is None
        and re.search(r"\d", value)
        and not os.path.exists(value)  # noqa: PTH110 - where a secret is, is none
    }


def _secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets of *environment* in every form, each with the name of its variable."""
    return {
        form: name
        for name, value in environment.items()
        if is_secret(name) and not os.path.exists(value)  # noqa: PTH110 - where a secret is, is none
        for form in _forms(value)
    }


def _forms(value: str) -> set[str]:
    """Return *value* as a text may quote it: stripped, escaped, each header of several lines."""
    whole = value.strip()
    lines = [line.partition(":")[2].strip() for line in whole.splitlines() if ":" in line]
    quoted = quote(whole.encode(errors="surrogateescape"), safe="")
    escaped = whole.encode("unicode_escape").decode()
    forms = {value, whole, valid(whole), *lines, quoted, escaped}
    return {form for form in forms if len(form) >= _SHORTEST}


def _without_pieces(text: str, value: str, name: str) -> str:
    """Return *text* without what is a long piece of *value*: servers quote ends of keys."""
    index = 0
    while index + _PIECE <= len(text):
        end = index + _PIECE
        if text[index:end] not in value:
            index += 1
            continue
        while end < len(text) and text[index : end + 1] in value:
            end += 1
        text = f"{text[:index]}[{name}]{text[end:]}"
        index += len(name) + 2
    return text


def _without_value(match: re.Match[str]) -> str:
    return f"{match[1]}{HIDDEN}" if is_secret(match[2]) else match[0]
