"""The command line: arguments in, a command called, an exit code out.

A command's module is imported only when that command is chosen, so that `leftfold list` pays
neither for the SDK nor for the prompt.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from app.i18n import _, is_english
from app.suggestions import nearest, no_command

_SELDOM = 100_000
"""Objects that are made until garbage is looked for: more than there are when the prompt is drawn.

Modules and events stay; to look through them again and again takes a fifteenth of the start.
"""

COMMANDS = {
    "list": "List the conversations of this directory, newest first.",
    "search": "Find every TEXT in what was said, called or printed here, the newest first.",
    "query": "Ask in SQL what was said, called, refused and spent in any conversation.",
    "show": "Print the transcript, up to ENTRY or to the end.",
    "log": "Print the events of a conversation, or of all, one a line.",
    "tree": "Show the tree: branches, labels and the leaf.",
    "context": "Print the request body that the model gets next, or got for an answer.",
    "verify": "Check conversations line by line; exit 1 if anything is wrong.",
    "recover": "Save what can be saved of a damaged conversation into a new one.",
    "import": "Take over the history of another program: pi, Claude Code, Codex, and others.",
    "export": "Print a conversation in the form of other programs, up to ENTRY or to the end.",
    "fork": "Copy a conversation, up to ENTRY or all of it; print the new id.",
    "rename": "Name a conversation; an empty NAME takes the name away.",
    "label": "Label an entry; without TEXT the label is taken away.",
    "archive": "Leave a conversation out of lists; nothing is deleted.",
    "delete": "Move a conversation into the trash, and say where it is; nothing is erased.",
    "trash": "Show what was deleted, bring it back, or erase it for good.",
    "copy": "Copy conversations into another store or persistence module, or what is new of them.",
    "sync": "Bring this store and another one in step, both ways.",
    "stats": "Show what was spent in one conversation, or in each.",
    "hooks": "Show how far your after-hooks are, or run them.",
    "config": "Show each setting, and where its value comes from.",
}
"""What each command does, in a line: here, so that the help imports none of them."""


class ReaderGoneError(Exception):
    """Nobody reads our output any more; that is no error of ours."""


class Commands(click.Group):
    """The subcommands, each imported when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands with what each does."""
        with formatter.section(_("Commands")):
            formatter.write_dl([(name, _(text)) for name, text in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments begin with; anything else is the first prompt.

        A word that is almost a command is a mistake: it is said which one may be meant.
        """
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        near = nearest(name, COMMANDS)
        if near is not None and not any(map(str.isspace, name)):
            ctx.fail(no_command(name, _("Did you mean {name!r}?").format(name=near)))
        return "", with_first_prompt(self), args

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command that ``app/commands/NAME.py`` defines as ``command``."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"app.commands.{cmd_name}").command
        return in_our_language(command)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that has gone away is told from an error (click does not)."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGoneError from None

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help, in the language of the person."""
        in_our_language(self)
        super().format_help(ctx, formatter)


def with_first_prompt(group: click.Group) -> click.Command:
    """Return the command that begins with a prompt; it takes the options of *group*, too."""

    def begin(first: str, **flags: Any) -> int:
        from app import run  # noqa: PLC0415 - see below

        context = click.get_current_context()
        assert context.parent is not None
        given = {
            name: value
            for name, value in flags.items()
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        }
        return run.run(first=first, **(context.parent.params | given))

    options = [option for option in group.params if option.expose_value]
    return click.Command("", callback=begin, params=[click.Argument(["first"]), *options])


def in_our_language(command: click.Command) -> click.Command:
    """Return *command* with all of its help in the language of the person."""
    if not is_english():
        command.help = _(command.help or "")
        for option in command.params:
            if isinstance(option, click.Option) and option.help:
                option.help = _(option.help)
        for inner in getattr(command, "commands", {}).values():
            in_our_language(inner)
    return command


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the newest here.")
@click.option(
    "-r",
    "--resume",
    is_flag=False,
    flag_value="?",
    metavar="[ID[@ENTRY]]",
    help="Go on with ID, or choose.",
)
@click.option("--fork", "fork_of", metavar="ID[@ENTRY]", help="Go on with a copy up to ENTRY.")
@click.option("-p", "--prompt", metavar="TEXT", help="One turn, no REPL; - reads standard input.")
@click.option(
    "--output",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="What -p prints.",
)
@click.option(
    "--input",
    "input_",
    type=click.Choice(["text", "stream-json"]),
    default="text",
    help="stream-json: a program drives the conversation, a JSON object a line.",
)
@click.option("--name", help="Name the conversation.")
@click.option("--model", help="Ask this model.")
@click.option("--thinking", metavar="LEVEL", help="off, low, medium, high, xhigh or max.")
@click.option("--offline", is_flag=True, help="Use the built-in offline model.")
@click.option("--yes", is_flag=True, help="Let tools act without asking.")
@click.option("--read-only", is_flag=True, help="Offer only the tools that just read.")
@click.option(
    "--tools", metavar="NAMES", help="Offer only these: bash, read, write, edit, ls, find, grep."
)
@click.option("--system-prompt", metavar="TEXT|@FILE", help="Instead of our own instructions.")
@click.option("--append-system-prompt", metavar="TEXT|@FILE", help="After the instructions.")
@click.option("--here", is_flag=True, help="Work here if the conversation's directory is gone.")
@click.option("--store", metavar="DIR", help="The folder of the logs.")
@click.version_option(package_name="leftfold")
@click.pass_context
def leftfold(ctx: click.Context, /, **flags: Any) -> None:
    """Leftfold: a coding agent whose whole state is an append-only event log."""
    ctx.obj = flags["store"]
    if ctx.invoked_subcommand is not None:
        return
    from app import run  # noqa: PLC0415 - only here is the loop needed

    ctx.exit(run.run(**flags))


def _complain(error: click.ClickException) -> None:
    """Say what is wrong with the command line, and where to find what is right: two lines."""
    from app.view.plain import plain  # noqa: PLC0415 - not for those who do it right

    # An argument that is quoted in it may have lines of its own.
    message = " ".join(error.format_message().split())
    click.echo(f"leftfold: {plain(message)}", err=True)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        command = f"{error.ctx.command_path} --help"
        click.echo(_("`{command}` shows what there is").format(command=command), err=True)


def _print_failure(kind: str, message: str) -> None:
    """Print the result of a turn that could not begin, where a program waits for one."""
    chosen = leftfold.make_context(
        "leftfold",
        sys.argv[1:],
        resilient_parsing=True,
        ignore_unknown_options=True,
        allow_interspersed_args=True,
    ).params
    is_driven = chosen["input_"] == "stream-json"
    if is_driven or (chosen["prompt"] is not None and chosen["output"] in ("json", "stream-json")):
        from app.headless.one_turn import failure, happened  # noqa: PLC0415 - not for help

        happened(failure(kind, message))


def main() -> NoReturn:
    """Run the command line; errors are a line or two, and a traceback only if it is asked for."""
    gc.set_threshold(_SELDOM)
    atexit.register(gc.freeze)  # else the end looks through them, too: 0.6 s after a turn
    try:
        is_english()  # click's own messages, too
        code = leftfold.main(prog_name="leftfold", standalone_mode=False)
    except click.ClickException as error:
        _complain(error)
        _print_failure("usage", error.format_message())
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except ReaderGoneError:
        from app.outputs import look_away  # noqa: PLC0415 - most outputs have a reader

        look_away()
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - said here, or nowhere
        from app.errors import FAILED  # noqa: PLC0415
        from app.explanations import explanation, kind_of, name_of, traceback_of  # noqa: PLC0415
        from app.view.plain import plain  # noqa: PLC0415

        if os.environ.get("LEFTFOLD_DEBUG"):
            click.echo(traceback_of(error), err=True)
            sys.exit(FAILED)
        bug = _("unexpected error: {what}").format(what=name_of(error))
        hint = _("(this is a bug; with LEFTFOLD_DEBUG=1 it shows where)")
        message, exit_code = explanation(error) or (f"{bug}\n{hint}", FAILED)
        click.echo(f"leftfold: {plain(message)}", err=True)
        _print_failure(kind_of(error), message)
        sys.exit(exit_code)
    sys.exit(code if isinstance(code, int) else 0)
