"""Which field of the request a refusal means: then no content is to blame.

Servers that do not know all of the API's fields say so in their own words, and name the field by
its path (``tools.0.custom.strict``), in quotes, or in a sentence. Pure: words in, a name out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from domain.text import nodes

if TYPE_CHECKING:
    from domain.messages import JsonObject

_NO_FIELDS = frozenset({"messages", "model", "max_tokens"})
"""What is refused of these is content, another model's name, a limit."""
_OTHERS = frozenset({
    "anthropic_beta", "betas", "budget_tokens", "cache_control", "container", "context_management",
    "effort", "input_schema", "mcp_servers", "metadata", "output_config", "service_tier",
    "stop_sequences", "stream_options", "strict", "temperature", "tool_choice", "top_k", "top_p",
})  # fmt: skip
"""Fields of the API: a proxy may add what this request has not, and the next server refuse it."""
_WORDS = frozenset({"stream", "system", "container", "effort", "metadata", "strict"})
"""Words of every sentence: a field only in quotes, or before a colon."""

_REFUSED = re.compile(
    r"\bextra(?:neous)?\b|unexpected|unknown|unrecogni[sz]ed|unsupported|additional propert"
    r"|not (?:be )?(?:permitted|allowed|supported|recogni[sz]ed|expected|accepted|understood)"
    r"|n(?:o|')t support|cannot find|invalid (?:field|param|arg|propert|key)"
    r"|不支持|未知|无法识别|不允许|无效",
    re.IGNORECASE,
)
_OF_CONTENT = re.compile(
    r"\bmessages?\b|\bcontents?\b|\bblocks?\b|signature|\b(?:assistant|user)\b", re.IGNORECASE
)
_EXPECTED = re.compile(r"\bexpected (?:one|any) of\b", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w.\]])(?:body\.|#/)?(\w+)(?:[.\[/]\w+\]?)+(?=[^\w/]|$)")
_NAME = re.compile(r"\b([a-z]\w*)\b(['\"`\]}:]?)")
_SAID = re.compile(
    r"(?:fields?|param\w*|arguments?|keys?|propert\w+|names?|inputs?)\b"
    r"(?:\(s\))?(?: in object| supplied)?"
    r"[\s:=(\[{]*['\"`]([a-z]\w*)['\"`]",
    re.IGNORECASE,
)
_OF_TOOLS = re.compile(r"\btools?[ -](?:use|calls?|calling)\b|\bfunction[ -]call", re.IGNORECASE)


def refused_field(request: JsonObject, words: str) -> str | None:
    """Return the field of *request*, by name or path, that the *words* of a refusal mean.

    None where they mean content, or name nothing.
    """
    ours = request.keys() - _NO_FIELDS
    words = _EXPECTED.split(words)[0]
    if _OF_CONTENT.search(words):
        return None
    for path in _PATH.finditer(words):
        if path[1] in ours | _OTHERS:
            return path[0].removeprefix("body.").removeprefix("#/")
    if not _REFUSED.search(words):
        return None
    for name, after in _NAME.findall(words):
        if name in ours | _OTHERS and (name not in _WORDS or after in ("'", '"', "`", ":", "]")):
            return str(name)
    if "tools" in ours and _OF_TOOLS.search(words):
        return "tools"
    said = _SAID.search(words)
    content = list(nodes(request.get("messages")))
    names = {key for key, _ in content} | {str(node) for key, node in content if key == "type"}
    return said[1] if said and said[1] not in names else None
