"""`bettong dead-letters list | show | retry`: the messages that could not be processed."""

from __future__ import annotations

import heapq
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bettong.cli.check import APPLICATION
from bettong.cli.locations import DirectoryFlag, KafkaFlag, Locations, locations
from bettong.cli.run import HERE

if TYPE_CHECKING:
    from rich.console import Console

    from bettong.application.plan import Plan
    from bettong.cli.dead_letter_log import DeadLetterLog, Found, Mark
    from bettong.cli.dead_letter_retry import Resend
    from bettong.frames.dead_letter_id import DeadLetterId

# What `list` keeps of a message: enough to know it by.
_MESSAGE_BYTES_LISTED = 200
_REASONS_MAX = 20

# One sends and the next one leaves the mark; a Redis that lost its data between them takes one more.
_SESSIONS_MAX = 4

dead_letters = typer.Typer(
    no_args_is_help=True, help="List, show and send again the messages that could not be processed."
)

_Application = Annotated[str, APPLICATION]
_Computation = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only those of this computation, source or sink.")
]
_Origin = Annotated[
    str | None,
    typer.Option(metavar="PATTERN", help="Only those of these origins, e.g. orders/feed-1 or 'orders/*'."),
]
_DeadLetter = Annotated[
    str, typer.Argument(metavar="LETTER", help="The dead letter, as `list` names it, e.g. 0.12.3.")
]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


@dead_letters.command("list")
def list_(
    application: _Application,
    *,
    computation: _Computation = None,
    origin: _Origin = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="At most so many.")] = 20,
    before: Annotated[
        str | None,
        typer.Option(metavar="LETTER", help="Older than this one: the last one listed, for the next page."),
    ] = None,
    json: _Json = False,
    kafka: KafkaFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """List dead letters, newest first, and how many there are of each computation."""
    from rich.console import Console

    from bettong.cli.dead_letter_views import as_json, dead_letters_table

    log = _log(*_found(application, directory, kafka))
    newest_order = log.at(_id(before)).order if before is not None else None
    counts: Counter[str] = Counter()
    page: list[tuple[tuple[int, DeadLetterId], Found]] = []
    for found in _wanted(log.dead_letters(), computation, origin):
        counts[found.dead_letter.computation] += 1
        if newest_order is None or found.order < newest_order:
            found.dead_letter.message = found.dead_letter.message[:_MESSAGE_BYTES_LISTED]
            push = heapq.heappush if len(page) < limit else heapq.heappushpop
            push(page, (found.order, found))
    marks = log.retried()
    newest = [found for _, found in sorted(page, reverse=True)]
    if json:
        for found in newest:
            sys.stdout.write(as_json(found, marks.get(found.id)) + "\n")
        return
    console = Console(highlight=False)
    if newest:
        console.print(dead_letters_table(newest, marks))
    each = ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
    console.print(
        f"{counts.total():,} dead letters{': ' if each else ''}{each}", markup=False, soft_wrap=True
    )
    if len(newest) == limit and counts.total() > limit:
        console.print(f"older ones: --before {newest[-1].id}", style="dim")


@dead_letters.command()
def show(
    application: _Application,
    dead_letter: _DeadLetter,
    *,
    form: Annotated[
        Literal["auto", "json", "text", "hex", "raw"],
        typer.Option("--as", help="How the message is shown; raw: its bytes alone, for a file."),
    ] = "auto",
    json: _Json = False,
    kafka: KafkaFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Show one dead letter with all its fields, and whether it can be sent again."""
    from rich.console import Console

    from bettong.cli.dead_letter_retry import Cannot, decide
    from bettong.cli.dead_letter_views import Form, as_json, message_text, moment
    from bettong.errors import BettongError

    plan, where = _found(application, directory, kafka)
    log = _log(plan, where)
    found = log.at(_id(dead_letter))
    if Form(form) is Form.RAW:
        sys.stdout.buffer.write(found.dead_letter.message)
        return
    mark = log.retried().get(found.id)
    if json:
        sys.stdout.write(as_json(found, mark) + "\n")
        return
    decision = decide(plan, found, mark, repeat=False, now_ns=time.time_ns())
    retry = decision.reason if isinstance(decision, Cannot) else f"goes to source {decision.source}"
    try:
        message = message_text(found.dead_letter.message, Form(form))
    except ValueError as error:
        raise BettongError(f"the message of {found.id} is no {form}: {error}; see it with --as hex") from None
    fields = {
        "id": str(found.id),
        "taken in": f"{moment(found.time_ns)} UTC",
        "computation": found.dead_letter.computation,
        "reason": found.dead_letter.reason,
        "origin": found.dead_letter.origin,
        "sequence": str(found.dead_letter.sequence),
        "index": str(found.dead_letter.index),
        "message is": ("as received" if found.dead_letter.as_received else "JSON")
        + (", only its beginning" if found.dead_letter.cut else ""),
        "retry": retry,
    }
    console = Console(highlight=False)
    for name, value in fields.items():
        console.print(f"{name:<12} {value}", markup=False, soft_wrap=True)
    console.print(message, markup=False, soft_wrap=True)


@dead_letters.command()
def retry(
    application: _Application,
    *,
    only: Annotated[
        list[str] | None, typer.Option(metavar="LETTER", help="This one; may be given several times.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All that can be, and were not yet.")] = False,
    computation: _Computation = None,
    origin: _Origin = None,
    limit: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="N", help="With --all: at most so many.")
    ] = 10_000,
    repeat: Annotated[
        bool, typer.Option("--repeat", help="Also where other computations would process a message twice.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    sender: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The sender; by default that of the suite in --dir."),
    ] = None,
    kafka: KafkaFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Send messages to their sources again, each once however often this is called.

    Only messages of sources can be sent; the others are told, with the reason. A message passes its whole stage again.
    """
    from rich.console import Console

    from bettong.errors import BettongError, LocalError

    if bool(only) == all_:
        raise typer.BadParameter("say which: --only LETTER, or --all")
    plan, where = _found(application, directory, kafka)
    log = _log(plan, where)
    target = sender or where.sender
    if target is None and not dry_run:
        raise LocalError("where the sender is cannot be told from here: give --sender HOST:PORT")
    ids = [_id(text) for text in only or ()]
    chosen = _wanted((log.at(id_) for id_ in ids) if ids else log.dead_letters(), computation, origin)
    run = _Run(Console(highlight=False), plan, log.retried(), None if dry_run else target, repeat=repeat)
    for found in chosen:
        run.take(found)
        if run.sent == limit:
            break
    run.tell(limited=run.sent == limit and not ids)
    if ids and run.held:
        raise BettongError(f"{run.held} of {len(ids)} cannot be sent again, see above")


class _Run:
    """One call of `retry`: decides on each dead letter, sends, and counts. `target` None: a dry run."""

    def __init__(
        self,
        console: Console,
        plan: Plan,
        marks: Mapping[DeadLetterId, Mark],
        target: str | None,
        *,
        repeat: bool,
    ) -> None:
        self.sent = self.refused = self.held = self.already = 0
        self._console = console
        self._plan = plan
        self._marks = marks
        self._target = target
        self._repeat = repeat
        self._reasons: Counter[str] = Counter()

    def take(self, found: Found) -> None:
        """Sends the message of a dead letter, or notes why not."""
        from bettong.cli.dead_letter_retry import Cannot, decide
        from bettong.errors import RefusedError

        mark = self._marks.get(found.id)
        decision = decide(self._plan, found, mark, repeat=self._repeat, now_ns=time.time_ns())
        if isinstance(decision, Cannot):
            if mark is not None and mark.done:
                self.already += 1
            else:
                self._hold(decision.reason)
            return
        if self._target is None:
            self._say(f"{found.id} would be sent to {decision.source}")
        else:
            try:
                taken = send_again(self._target, found.id, decision)
            except RefusedError as error:
                self._hold(str(error))
                return
            self.refused += not taken
            self._say(
                f"{found.id} sent to {decision.source}"
                + ("" if taken else ", which refused it again: it is a new dead letter")
            )
        self.sent += 1

    def tell(self, *, limited: bool) -> None:
        """What was done, in total, and why the rest was not. `limited`: there may be more."""
        for reason, count in self._reasons.most_common():
            self._say(f"{count:,} cannot be sent again: {reason}")
        verb = "would be sent" if self._target is None else "sent"
        also = f", {self.refused:,} of them refused again" if self.refused else ""
        self._say(
            f"{self.sent:,} {verb}{also}; {self.already:,} were sent before, {self.held:,} cannot be sent again"
        )
        if limited:
            self._say("stopped at --limit: call it again for the rest")

    def _hold(self, reason: str) -> None:
        self.held += 1
        known = reason in self._reasons or len(self._reasons) < _REASONS_MAX
        self._reasons[reason if known else "other reasons (`show` tells each)"] += 1

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)


def send_again(target: str, id_: DeadLetterId, resend: Resend) -> bool:
    """Sends a dead letter's message, and leaves the mark that it was; whether the source could read it.

    The stream is named after the dead letter and the message is its frame 1, so whoever has seen it knows it again. The
    mark is that of a session at whose opening the sender knew that the frame had arrived. Where it did not, for the
    leases of streams were lost in between, the frame is sent once more.
    Raises ClientError, also when no session left the mark.
    """
    from bettong.client.sender import Sender
    from bettong.errors import ClientError

    taken = True
    for _ in range(_SESSIONS_MAX):
        with Sender(target, resend.source, id_.stream) as sender:
            if sender.acknowledged:
                return taken
            if resend.row is not None:
                sender.send_rows([resend.row], sequence=1)
            else:
                sender.send_messages([resend.message], sequence=1)
            sender.flush()
            taken = sender.dead_letters == 0
    raise ClientError(
        f"dead letter {id_}: its message was sent to source {resend.source!r}, but the sender at {target} forgot it"
        f" {_SESSIONS_MAX} times before it was marked; see that Redis keeps its data, and call the command again within"
        " 12 hours: until then the message counts once"
    )


def _found(application: str, directory: DirectoryFlag, kafka: str | None) -> tuple[Plan, Locations]:
    from bettong.application.loading import load
    from bettong.application.plan import plan

    planned = plan(load(application))
    return planned, locations(application, planned.application, directory, kafka=kafka)


def _log(plan: Plan, where: Locations) -> DeadLetterLog:
    from bettong.cli.dead_letter_log import DeadLetterLog

    return DeadLetterLog(where.kafka, plan.application, frame_bytes_max=where.frame_bytes_max)


def _id(text: str) -> DeadLetterId:
    from bettong.frames.dead_letter_id import DeadLetterId

    if (id_ := DeadLetterId.of(text)) is None:
        raise typer.BadParameter(f"{text!r} names no dead letter; expected e.g. 0.12.3, as `list` shows it")
    return id_


def _wanted(dead_letters: Iterator[Found], computation: str | None, origin: str | None) -> Iterator[Found]:
    for found in dead_letters:
        of_computation = computation is None or found.dead_letter.computation == computation
        if of_computation and (origin is None or fnmatchcase(found.dead_letter.origin, origin)):
            yield found
