"""Feeds the inputs of a workload, in frames, at their pace.

Every run, undisturbed or disturbed, feeds the same frames in the same rounds. In turns, a round of one input is durable
before the next input's begins, so the log of every run has one order; in free order, each has its own thread.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bettong.application.plan import Plan
from bettong.chaos.spec import Order, Workload
from bettong.client.message_files import Format, Portion, format_of, portions
from bettong.client.message_input import Wanted
from bettong.client.sender import Sender
from bettong.errors import BettongError, ClientError, SettingsError

_COUNTING = 65_536  # messages per portion while they are only counted
# These clients do not give up while the system may still recover.
_PATIENCE_S = 300.0
_CLOSE_S_MAX = 5.0


@dataclass(frozen=True, slots=True)
class InputFeed:
    """One input, checked: `total` messages, in frames of at most `wanted.messages_max`."""

    source: str
    stream: str
    file: Path
    format: Format
    wanted: Wanted
    total: int

    def rounds(self, count: int) -> Iterator[list[Portion]]:
        """The frames, spread over `count` rounds: in order, the same each time."""
        frames = portions(self.file, self.format, self.wanted)
        ahead: Portion | None = next(frames, None)
        for number in range(1, count + 1):
            due: list[Portion] = []
            while ahead is not None and (ahead.last * count <= self.total * number or number == count):
                due.append(ahead)
                ahead = next(frames, None)
            yield due


def feeds(
    workload: Workload, plan: Plan, folder: Path, *, rounds: int, frame_bytes_max: int
) -> list[InputFeed]:
    """The inputs of a workload, their paths relative to `folder`; each is read once, to count and check it.

    Raises SettingsError for an unknown source, SchemaError for a file that does not fit it.
    """
    found = []
    sources = {source.name: source for source in plan.sources}
    for number, each in enumerate(workload.inputs, 1):
        source = sources.get(each.source)
        if source is None:
            known = ", ".join(sources)
            raise SettingsError(
                f"workload.inputs[{number - 1}].source: no source {each.source!r}; there are {known}"
            )
        file = folder / each.file
        if not file.is_file():
            raise SettingsError(f"workload.inputs[{number - 1}].file: {file} is not a file")
        kind = each.format if each.format is not None else format_of(file)
        wanted = Wanted(source.schema.arrow, source.decoder is not None, _COUNTING, frame_bytes_max)
        total = max((portion.last for portion in portions(file, kind, wanted)), default=0)
        if not total:
            raise SettingsError(f"workload.inputs[{number - 1}].file: {file} holds no messages")
        # A frame per round, or a few where a round has many messages.
        wanted = Wanted(
            wanted.schema, wanted.takes_rows, min(4096, math.ceil(total / rounds)), frame_bytes_max
        )
        found.append(InputFeed(each.source, each.stream or f"chaos-{number}", file, kind, wanted, total))
    streams = [(each.source, each.stream) for each in found]
    if len(set(streams)) < len(streams):
        raise SettingsError(
            "workload.inputs: two inputs of one source have the same stream name: give each its own"
        )
    return found


class Feeding:
    """Feeds in the background; the inputs take turns among the senders at `addresses`.

    `paced_s`: over so many seconds; None: as fast as possible.
    """

    def __init__(
        self,
        found: list[InputFeed],
        addresses: Sequence[str],
        *,
        order: Order,
        rounds: int,
        paced_s: float | None,
    ) -> None:
        self._rounds = rounds
        self._paced_s = paced_s
        self._stop = threading.Event()
        self._failure: BettongError | None = None
        self._begun_s = time.time()
        addressed = list(zip(found, itertools.cycle(addresses), strict=False))
        groups = [addressed] if order is Order.TURNS else [[each] for each in addressed]
        self._threads = [
            threading.Thread(target=self._keep, args=(group,), name=f"feed-{group[0][0].source}", daemon=True)
            for group in groups
        ]

    def start(self) -> None:
        """Starts now."""
        self._begun_s = time.time()
        for thread in self._threads:
            thread.start()

    def done(self) -> bool:
        """Whether everything is acknowledged. Raises the error that ended a feed."""
        if self._failure is not None:
            raise self._failure
        return not any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Ends it, also while frames are in flight."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_CLOSE_S_MAX)

    def _keep(self, group: list[tuple[InputFeed, str]]) -> None:
        try:
            self._feed(group)
        except BettongError as error:
            self._failure = self._failure or error

    def _feed(self, group: list[tuple[InputFeed, str]]) -> None:
        senders = [
            Sender(address, feed.source, feed.stream, credit_wait_s=_PATIENCE_S, reconnect_s=_PATIENCE_S)
            for feed, address in group
        ]
        spread = zip(*(feed.rounds(self._rounds) for feed, _ in group), strict=True)
        try:
            for number, rounds in enumerate(spread):
                due_s = self._due_s(number)
                if self._stop.wait(max(0.0, due_s - time.time())):
                    raise ClientError("feeding was stopped")
                for sender, frames in zip(senders, rounds, strict=True):
                    self._send(sender, frames, due_s)
                    if len(group) > 1:
                        sender.flush(_PATIENCE_S)
            for sender in senders:
                sender.flush(_PATIENCE_S)
                sender.close()
        except BaseException as error:
            for sender in senders:
                sender.__exit__(type(error), error, None)
            raise

    def _due_s(self, number: int) -> float:
        return (
            self._begun_s + self._paced_s * number / self._rounds
            if self._paced_s is not None
            else time.time()
        )

    def _send(self, sender: Sender, frames: list[Portion], due_s: float) -> None:
        for portion in frames:
            sent_ns = int(due_s * 1e9)
            if isinstance(portion.body, list):
                sender.send_rows(portion.body, sequence=portion.last, sent_ns=sent_ns)
            else:
                sender.send_columns(portion.body, sequence=portion.last, sent_ns=sent_ns)
