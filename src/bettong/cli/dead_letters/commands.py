"""`bettong dead-letters list | show | retry`: the messages that could not be processed."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bettong.cli.check import APPLICATION
from bettong.cli.dead_letters.listing import print_each, print_one, print_reasons
from bettong.cli.directory import HERE
from bettong.cli.locations import DirectoryFlag, KafkaFlag
from bettong.cli.printable import printable

if TYPE_CHECKING:
    from bettong.application.plan import Plan
    from bettong.frames.dead_letter_id import DeadLetterId
    from bettong.inspection.live.dead_letters import DeadLetterLog
    from bettong.inspection.locations import Locations

dead_letters = typer.Typer(
    no_args_is_help=True, help="List, show and send again the messages that could not be processed."
)

_Application = Annotated[str, APPLICATION]
_Computation = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only those of this computation, source or sink.")
]
_Origin = Annotated[
    str | None,
    typer.Option(metavar="PATTERN", help="Only those from these origins, e.g. orders/feed-1 or 'orders/*'."),
]
_DeadLetter = Annotated[
    str, typer.Argument(metavar="DEAD_LETTER", help="The dead letter, as `list` names it, e.g. 0.12.3.")
]
_Repeat = Annotated[
    bool,
    typer.Option(
        "--repeat",
        help="Also send messages that other computations would process twice, or that may have been sent before.",
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


@dead_letters.command("list")
def list_(
    application: _Application,
    *,
    computation: _Computation = None,
    origin: _Origin = None,
    each: Annotated[bool, typer.Option("--each", help="List them one by one, newest first.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="Print at most N lines.")] = 20,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="DEAD_LETTER",
            help="With --each: only older ones than this; for the next page, the last one listed.",
        ),
    ] = None,
    json: _Json = False,
    kafka: KafkaFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """List dead letters: by computation and reason, with counts and the newest; or one by one."""
    from bettong.inspection.dead_letters import matching

    if before is not None and not each:
        raise typer.BadParameter("--before goes with --each, which lists dead letters one by one")
    planned, where = _found(application, directory, kafka)
    log = _log(planned, where)
    found = matching(log.dead_letters(), computation, origin)
    if each:
        order = log.at(_id(before)).order if before is not None else None
        any_ = print_each(found, log.retried(), limit, order, json=json)
    else:
        any_ = print_reasons(found, limit, json=json)
    if not any_:
        _check_name(planned, computation)


@dead_letters.command()
def show(
    application: _Application,
    dead_letter: _DeadLetter,
    *,
    form: Annotated[
        Literal["auto", "json", "text", "hex", "raw"],
        typer.Option("--as", help="How the message is shown; raw: only its bytes, for a file."),
    ] = "auto",
    json: _Json = False,
    kafka: KafkaFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Show one dead letter with all its fields, and whether it can be sent again."""
    from bettong.errors import BettongError
    from bettong.inspection.json_lines import dead_letter_json
    from bettong.inspection.retry import Cannot, decide
    from bettong.inspection.text import MessageForm, message_text

    plan, where = _found(application, directory, kafka)
    log = _log(plan, where)
    found = log.at(_id(dead_letter))
    if MessageForm(form) is MessageForm.RAW:
        sys.stdout.buffer.write(found.dead_letter.message)
        return
    mark = log.retried().get(found.id)
    if json:
        sys.stdout.write(dead_letter_json(found, mark) + "\n")
        return
    decision = decide(plan, found, mark, repeat=False, now_ns=time.time_ns())
    retry = decision.reason if isinstance(decision, Cannot) else f"goes to source {decision.source}"
    try:
        message = message_text(found.dead_letter.message, MessageForm(form))
    except ValueError as error:
        raise BettongError(
            f"the message of {found.id} is not {form}: {error}; show it with --as hex"
        ) from None
    print_one(found, retry, message)


@dead_letters.command()
def retry(
    application: _Application,
    *,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="DEAD_LETTER", help="Send this one; may be given several times."),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Send all that can be sent again and were not yet.")
    ] = False,
    computation: _Computation = None,
    origin: _Origin = None,
    limit: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="N", help="With --all: send at most N.")
    ] = 10_000,
    repeat: _Repeat = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")] = False,
    sender: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The sender; by default that of the suite in --dir."),
    ] = None,
    kafka: KafkaFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Send dead letters to their sources again, each only once however often this is run.

    Only messages of sources can be sent; others are listed with the reason. A message passes its whole stage again.
    """
    from rich.console import Console

    from bettong.errors import BettongError, LocalError
    from bettong.inspection.dead_letters import matching
    from bettong.inspection.live.resending import Resending

    if bool(only) == all_:
        raise typer.BadParameter("give --only DEAD_LETTER, or --all")
    plan, where = _found(application, directory, kafka)
    log = _log(plan, where)
    target = sender or where.sender
    if target is None and not dry_run:
        raise LocalError("the sender's address is not known here: give --sender HOST:PORT")
    ids = [_id(text) for text in only or ()]
    chosen = matching(log.those(ids) if ids else log.dead_letters(), computation, origin)
    resending = Resending(plan, log.retried(), None if dry_run else target, repeat=repeat)
    console, found = Console(highlight=False), None
    for found in chosen:
        if (text := resending.retry(found, time.time_ns())) is not None:
            console.print(printable(text), markup=False, soft_wrap=True)
        if resending.sent == limit:
            break
    for text in resending.summary():
        console.print(printable(text), markup=False, soft_wrap=True)
    if found is None:
        _check_name(plan, computation)
    if resending.sent == limit and not ids:
        console.print("stopped at --limit: run it again for the rest", markup=False, soft_wrap=True)
    if ids and resending.held:
        raise BettongError(f"{resending.held} of {len(ids)} cannot be sent again, see above")


def _found(application: str, directory: DirectoryFlag, kafka: str | None) -> tuple[Plan, Locations]:
    from bettong.inspection.live.application import loaded_plan
    from bettong.local.locations import locations

    planned = loaded_plan(application)
    return planned, locations(application, planned.application, directory, kafka=kafka, folds=False)


def _check_name(plan: Plan, computation: str | None) -> None:
    """Raises BadParameter for an unknown name. Computations of earlier versions may have left dead letters, too."""
    sources = [source.name for source in plan.sources]
    known = sorted({*sources, *(name for stage in plan.stages for name in stage.on_error())})
    if computation is not None and computation not in known:
        raise typer.BadParameter(f"nothing is called {computation!r}; there are {', '.join(known)}")


def _log(plan: Plan, where: Locations) -> DeadLetterLog:
    from bettong.inspection.live.dead_letters import DeadLetterLog

    return DeadLetterLog(where.kafka, plan.application, frame_bytes_max=where.frame_bytes_max)


def _id(text: str) -> DeadLetterId:
    from bettong.frames.dead_letter_id import DeadLetterId

    if (id_ := DeadLetterId.of(text)) is None:
        raise typer.BadParameter(
            f"{text!r} is not the id of a dead letter; expected e.g. 0.12.3, as `list` shows it"
        )
    return id_
