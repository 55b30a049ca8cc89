"""The gate between what tools give back and what is recorded: no known secret passes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from infrastructure.secret_shapes import masked
from infrastructure.secrets import values_in_outputs

if TYPE_CHECKING:
    from domain.tool_use import Plan, ToolOutput
    from infrastructure.tools.output import ToolContext

NOTICE = "[{count} masked here: {names}. The mark stands for a secret that is there in its place.]"


def without_secrets(output: ToolOutput, context: ToolContext) -> ToolOutput:
    """Return *output* masked, with a notice at its end; as it is, if nothing is to be masked.

    A file that was shown so is not known whole: it is not replaced by what was seen of it.
    """
    if not context.masks:
        return output
    content = _masked(output.content, context.masked)
    if not context.masked:
        return output
    count = f"{len(context.masked)} secret{'s' * (len(context.masked) > 1)}"
    notice = NOTICE.format(count=count, names=", ".join(dict.fromkeys(context.masked)))
    if isinstance(content, str):
        content = f"{content.removesuffix(chr(10))}\n{notice}"
    else:
        content = [*content, {"type": "text", "text": notice}]
    return replace(output, content=content, seen={}, masked=tuple(context.masked))


def plan_without_secrets(plan: Plan, context: ToolContext) -> Plan:
    """Return *plan* with what of it becomes a result masked."""
    if plan.problem is not None:
        plan = replace(plan, problem=without_secrets(plan.problem, context))
    return plan


def _masked(content: Any, found: list[str]) -> Any:
    """Return text, or the text of blocks, masked; add what was *found*."""
    if isinstance(content, str):
        text, names = masked(content, values_in_outputs())
        found += names
        return text
    return [
        block | {"text": _masked(block["text"], found)} if block.get("type") == "text" else block
        for block in content
    ]
