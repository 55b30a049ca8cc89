"""What tools give back has no known secret in it, nor has the file beside it."""

import asyncio
from dataclasses import replace

import pytest

from infrastructure.secrets import values_in_outputs
from infrastructure.tools import Toolbox
from infrastructure.tools.bash import Bash
from infrastructure.tools.output import ToolContext
from infrastructure.tools.read import Read

KEY = "AKIAQWERTYUIOPASDFGH"
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture
def context(tmp_path):
    return ToolContext(cwd=tmp_path, side_files=tmp_path / "outputs", tool_use_id="call")


def ran(tool, context, **arguments):
    return asyncio.run(tool.run(arguments, context))


def test_a_key_in_the_output_of_a_command_is_masked_and_it_is_said(context):
    live = []
    output = ran(
        Bash(),
        replace(context, on_output=live.append),
        command=f"echo {KEY[:7]}'{KEY[7:]}' ; echo {TOKEN}",
    )

    assert output.content.splitlines()[:2] == ["[masked: AWS access key]", "[masked: GitHub token]"]
    assert "2 secrets masked here: AWS access key, GitHub token" in output.content
    assert output.masked == ("AWS access key", "GitHub token")
    assert KEY not in "".join(live)


def test_a_key_in_colours_is_masked_in_what_is_recorded(context):
    output = ran(Bash(), context, command=f"printf '\\033[31m{KEY[:4]}\\033[0m{KEY[4:]}\\n'")

    assert "[masked: AWS access key]" in output.content
    assert KEY not in output.content


def test_the_side_file_is_masked_too(context):
    command = f"seq 3000; echo {TOKEN}; seq 3000; printf %s {TOKEN}"
    output = ran(Bash(), context, command=command)
    (side_file,) = context.side_files.iterdir()

    assert TOKEN not in side_file.read_text()
    assert side_file.read_text().count("[masked: GitHub token]") == 2
    assert TOKEN not in output.content
    assert len(output.masked) == 2


def test_a_file_that_was_shown_masked_is_not_known_whole(context):
    """Else what was seen of it, marks for secrets, could take its place."""
    (context.cwd / ".env").write_text(f"KEY={KEY}\n")
    (context.cwd / "plain").write_text("KEY=\n")

    assert ran(Read(), context, path=".env").content.startswith("KEY=[masked: AWS access key]\n")
    assert ran(Read(), replace(context, masked=[]), path=".env").seen == {}
    assert ran(Read(), replace(context, masked=[]), path="plain").seen != {}


def test_a_command_that_is_stopped_has_its_output_masked(context):
    async def stopped():
        task = None

        def heard(_text):
            task.cancel()

        call = Bash().run({"command": f"echo {KEY}; sleep 100"}, replace(context, on_output=heard))
        task = asyncio.ensure_future(call)
        try:
            await task
        except asyncio.CancelledError as error:
            return error.output

    assert "[masked: AWS access key]" in asyncio.run(stopped()).content


def test_it_can_be_switched_off(context):
    output = ran(Bash(), replace(context, masks=False), command=f"echo {KEY}")

    assert (output.content, output.masked) == (f"{KEY}\n", ())


def test_values_of_secret_variables_are_masked_unless_they_are_words(monkeypatch, context):
    monkeypatch.setenv("NPM_TOKEN", "Zq8vT3nWx7LmB2kR5yJ9")
    monkeypatch.setenv("DB_PASSWORD", "postgres")
    monkeypatch.setenv("OTHER_PASSWORD", "correct-horse-battery-staple")

    assert values_in_outputs().get("Zq8vT3nWx7LmB2kR5yJ9") == "NPM_TOKEN"
    output = ran(Bash(), context, command='echo "$NPM_TOKEN $DB_PASSWORD $OTHER_PASSWORD"')
    assert output.content.startswith("[masked: NPM_TOKEN] postgres correct-horse-battery-staple\n")


def test_the_toolbox_hands_on_whether_to_mask(tmp_path):
    from tests.builders import tool_use

    call = tool_use("one", "bash", command=f"echo {KEY}")
    box = Toolbox(cwd=tmp_path, side_files=tmp_path / "outputs", masks=False)
    from domain.messages import ToolUseBlock

    output = asyncio.run(box.run(ToolUseBlock(call), lambda _: None, state=None, seen={}))
    assert KEY in output.content
