"""What all tools share: arguments are checked, a schema is shown, and every failure is a result."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from domain.answer import UNPARSED
from domain.text import valid, valid_json
from domain.tool_use import Plan, ToolOutput
from infrastructure.errors import ToolError
from infrastructure.safe_files import reason_of
from infrastructure.tools.masking import plan_without_secrets, without_secrets
from infrastructure.tools.output import StoppedError

if TYPE_CHECKING:
    from infrastructure.tools.output import ToolContext

_SUMMARY_LENGTH = 300


class Arguments(BaseModel):
    """Arguments of a call; a name that the tool does not know is an error, not a silent loss."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FileArguments(Arguments):
    """Arguments of a call that is about one file."""

    path: str = Field(description="Path of the file, absolute or from the working directory")


Call = TypeVar("Call", bound=Arguments)
FileCall = TypeVar("FileCall", bound=FileArguments)


class Tool(ABC, Generic[Call]):
    """One thing that a model can have done on this machine.

    Attributes:
        name: What the model calls it.
        description: When and how to use it, written for a model.
        needs_approval: Whether a person is asked first.
        Input: The model of the arguments.
    """

    name: str
    description: str
    needs_approval: bool = True
    Input: type[Call]

    def definition(self) -> dict[str, Any]:
        """Return the tool as the Messages API wants it: name, description, input_schema."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": _schema_of(self.Input),
        }

    def summary(self, arguments: dict[str, Any]) -> str:
        """Return one line that tells a person what a call does, whatever its arguments are."""
        try:
            line = self._summary(self._parse(arguments))
        except ToolError:
            line = f"{self.name} {json.dumps(arguments, ensure_ascii=False)}"
        line = " ⏎ ".join(part.strip() for part in valid(line).strip().split("\n"))
        if len(line) > _SUMMARY_LENGTH:
            line = f"{line[:_SUMMARY_LENGTH]}… ({len(line):,} characters)"
        return line

    async def plan(self, arguments: dict[str, Any], context: ToolContext) -> Plan:
        """Find out what a call would do. Nothing but cancellation is raised."""
        try:
            plan = await self._plan(self._parse(arguments), context)
        except Exception as error:  # noqa: BLE001 - a tool that breaks must not break the turn
            plan = Plan(problem=self._failure(error))
        return plan_without_secrets(plan, context)

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Do it. Nothing but cancellation is raised: a failure is a result for the model."""
        try:
            output = await self._run(self._parse(arguments), context)
        except StoppedError as stopped:
            raise StoppedError(without_secrets(stopped.output, context)) from None
        except Exception as error:  # noqa: BLE001 - as above
            output = self._failure(error)
        return without_secrets(output, context)

    def _failure(self, error: Exception) -> ToolOutput:
        match error:
            case ToolError():
                message = str(error)
            case OSError(filename=None):
                message = reason_of(error)
            case OSError():
                message = f"{reason_of(error)}: {error.filename}"
            case _:
                message = f"{self.name} failed: {type(error).__name__}: {error}"
        return ToolOutput(message, is_error=True)

    @abstractmethod
    def _summary(self, call: Call) -> str:
        """Return the summary of a valid call."""

    async def _plan(self, call: Call, context: ToolContext) -> Plan:  # noqa: ARG002 - for others
        """Return the plan of a valid call; may raise `ToolError` and `OSError`."""
        return Plan()

    @abstractmethod
    async def _run(self, call: Call, context: ToolContext) -> ToolOutput:
        """Do a valid call; may raise `ToolError` and `OSError`."""

    def _parse(self, arguments: dict[str, Any]) -> Call:
        if isinstance(arguments, dict) and arguments.keys() == {UNPARSED}:
            raise ToolError(_no_arguments(arguments[UNPARSED]))
        values = valid_json(arguments)
        if isinstance(values, dict):
            # Models say null where they mean "not given".
            fields = self.Input.model_fields
            optional = {name for name, info in fields.items() if not info.is_required()}
            values = {k: v for k, v in values.items() if v is not None or k not in optional}
        try:
            return self.Input.model_validate(values)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}"
                for problem in error.errors(include_url=False, include_input=False)
            )
            shape = json.dumps(_example(_schema_of(self.Input)), ensure_ascii=False)
            raise ToolError(
                f"Wrong arguments: {problems}. {self.name} takes: {shape}. Nothing was done.",
            ) from error


def _no_arguments(text: object) -> str:
    """Say what is wrong with arguments that are no JSON object: that they lack their end, mostly.

    Which fields are missing says nothing then: the model has given them.
    """
    again = "Nothing was done. Make the call again, shorter, or in several steps."
    try:
        json.loads(text if isinstance(text, str) else json.dumps(text))
    except (ValueError, RecursionError) as error:
        length = len(str(text))
        is_cut = getattr(error, "pos", 0) >= len(str(text).rstrip()) or "Untermin" in str(error)
        why = "was cut off before its end" if is_cut else f"makes no sense: {error}"
        return f"The JSON of this call ({length:,} characters) {why}. {again}"
    return f"What a call takes has to be a JSON object. {again}"


def _schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema without what only pydantic needs: titles, references, docstrings."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    return _plain(schema, definitions)


def _example(schema: dict[str, Any]) -> Any:
    """Return what a value of *schema* looks like."""
    if "default" in schema:
        return schema["default"]
    match schema.get("type"):
        case "object":
            return {name: _example(value) for name, value in schema["properties"].items()}
        case "array":
            return [_example(schema["items"])]
        case _:
            return "…"


def _plain(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if reference := schema.get("$ref"):
        schema = definitions[reference.removeprefix("#/$defs/")]
    plain = {key: value for key, value in schema.items() if key != "title"}
    if "properties" in plain:
        plain.pop("description", None)
        plain["properties"] = {
            name: _plain(value, definitions) for name, value in plain["properties"].items()
        }
    if "items" in plain:
        plain["items"] = _plain(plain["items"], definitions)
    return plain
