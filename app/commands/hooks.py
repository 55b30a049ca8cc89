"""``leftfold hooks``: run the after-hooks of the user's settings, and show how far they are."""

from __future__ import annotations

import sys
from threading import Thread
from typing import TYPE_CHECKING, TypedDict

import click

from app import bootstrap, references
from app.errors import UsageError
from app.hooks.beside import runners
from app.hooks.outputs import HookFailure, HookListed
from app.i18n import _
from app.leaving import until_left
from app.outputs import utc, write
from app.settings import settings
from app.suggestions import suggestion
from app.view.plain import one_line, plain
from infrastructure.withheld import hide

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from app.application import Conversations
    from app.hook_settings import Hook
    from app.hooks.outputs import HookRan
    from app.hooks.runner import HookRunner, State
    from app.settings import Settings

_LONGEST = 200


class How(TypedDict):
    """How hooks are run: *beside* is for the process beside a run."""

    follow: bool
    since: int | None
    beside: bool


@click.command("hooks")
@click.argument("action", type=click.Choice(["list", "run"]), default="list")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--follow", is_flag=True, help="Go on with new events as they are recorded.")
@click.option("--since", type=int, help="Begin at this position; -N: at the last N events.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--beside", is_flag=True, hidden=True, help="Until the standard input ends.")
@click.pass_obj
def command(
    store: str | None, *, action: str, name: str | None, as_json: bool, **how: Unpack[How]
) -> None:
    """Show how far your after-hooks are, or run the hook NAME, or all: also one that is parked."""
    chosen = settings(store=store, also=("hooks",))
    hooks = [hook for hook in chosen.keys.hooks if name in (None, hook.name)]
    if name is not None and not hooks:
        names = [hook.name for hook in chosen.keys.hooks]
        raise UsageError(
            _("there is no hook {name!r}; {near}").format(name=name, near=suggestion(name, names))
        )
    if not hooks:
        click.echo(_("no hooks: see docs/hooks.md"), err=True)
    with bootstrap.conversations(chosen) as conversations:
        if action == "list":
            _list(runners(chosen, conversations, hooks), as_json=as_json)
        else:
            _run(chosen, conversations, hooks, as_json=as_json, **how)


# -- showing ---------------------------------------------------------------------------------------


def _list(found: Sequence[HookRunner], *, as_json: bool) -> None:
    for runner in found:
        row = _listed(runner)
        write(row) if as_json else click.echo(plain(_text(row)))


def _listed(runner: HookRunner) -> HookListed:
    hook = runner.hook
    place, failure = runner.positions.place(hook.name), runner.positions.failure(hook.name)
    return HookListed(
        hook=hook.name,
        events=hook.events,
        tools=hook.tools,
        command=hook.command,
        position=place.position if place else 0,
        behind=runner.behind(),
        is_parked=failure is not None and failure.is_parked,
        is_running=runner.is_running(),
        output=str(runner.command.log_path),
        failure=failure
        and HookFailure(failure.event_id, failure.attempts, failure.error, utc(failure.time)),
    )


def _text(row: HookListed) -> str:
    state = _("parked") if row.is_parked else _("running") if row.is_running else _("waiting")
    said = _("at position {position}, {behind} behind, {state}").format(
        position=row.position, behind=row.behind, state=state
    )
    lines = [f"{row.hook}  {', '.join(row.events)}  {said}"]
    if row.failure is not None:
        error = one_line(row.failure.message, _LONGEST)
        lines.append(
            "  "
            + _("{event}: attempt {attempt} failed: {error}").format(
                event=row.failure.event_id, attempt=row.failure.attempts, error=error
            )
        )
        lines.append("  " + _("what it printed: {path}").format(path=row.output))
    return "\n".join(lines)


# -- running ---------------------------------------------------------------------------------------


def _run(
    chosen: Settings,
    conversations: Conversations,
    hooks: Sequence[Hook],
    *,
    as_json: bool,
    **how: Unpack[How],
) -> None:
    """Run *hooks*; it ends with exit code 1 if one is parked."""
    hide()
    is_beside = how["beside"]

    def report(ran: HookRan) -> None:
        if not is_beside:
            write(ran) if as_json else click.echo(plain(_ran(ran)))

    found = runners(chosen, conversations, hooks, report)
    if how["since"] is not None:
        _begin(found, conversations, how["since"])
    for runner in found:
        if not is_beside:
            runner.positions.try_again(runner.hook.name)
        if not (how["follow"] or is_beside):
            runner.finish()
    states = _work(found, _wait_for_the_run if is_beside else None)
    raise SystemExit(0 if all(state == "done" for state in states) else 1)


def _begin(found: Sequence[HookRunner], conversations: Conversations, since: int) -> None:
    """Let each go on from the position *since*.

    Raises:
        UsageError: another program runs one of them.
    """
    end = conversations.recorder.max_notification_id() or 0
    for runner in found:
        if not runner.begin_at(references.counted(since, end)):
            name = runner.hook.name
            raise UsageError(_("{name}: another program runs this hook").format(name=name))


def _work(
    found: Sequence[HookRunner], beside: Callable[[Sequence[HookRunner]], object] | None
) -> list[State]:
    """Let all of them work, side by side, until they are done or somebody stops them."""
    states: list[State] = ["done"] * len(found)
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            states[number] = found[number].work()
        except BaseException as problem:  # noqa: BLE001 - raised again below
            problems.append(problem)

    def all_of_them() -> None:
        threads = [Thread(target=work, args=(number,)) for number in range(len(found))]
        for thread in threads:
            thread.start()
        if beside is not None:
            Thread(target=beside, args=(found,), daemon=True).start()
        for thread in threads:
            thread.join()

    def stop() -> None:
        for runner in found:
            runner.stop()

    until_left(all_of_them, stop)
    if problems:
        raise problems[0]
    return states


def _wait_for_the_run(found: Sequence[HookRunner]) -> None:
    """Wait for the end of the run beside which this is: the end of the standard input."""
    sys.stdin.buffer.read()
    for runner in found:
        runner.finish()


def _ran(ran: HookRan) -> str:
    line = f"{ran.position:8}  {ran.hook}  {ran.topic}  {ran.event_id}  {ran.outcome}"
    if ran.message is None:
        return line
    attempt = _("attempt {attempt}").format(attempt=ran.attempt)
    return f"{line}, {attempt}: {one_line(ran.message, _LONGEST)}"
