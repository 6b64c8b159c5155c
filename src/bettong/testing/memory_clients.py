"""Clients in memory: each stream's frames go through the sender's own session; its watermark is tracked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count

from bettong.application.nodes.source import Source
from bettong.application.plan import Plan
from bettong.errors import CaseError, SchemaError
from bettong.frames.columns import Columns
from bettong.frames.frame import CLOCK_NS_MAX, tick_record
from bettong.identifiers import SequenceNumber
from bettong.ingest.body import Body, read_body
from bettong.ingest.event_times import judge_event_times
from bettong.ingest.refusal import Refusal
from bettong.ingest.session import Append, Session, SourceRoute
from bettong.testing.inputs import CLIENT, ClientFrame, EndOfStream, WatermarkInput
from bettong.testing.memory_processor import FRAME_BYTES_MAX
from bettong.topics import dead_letter_topic, stage_topic
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame

_S_NS = 1_000_000_000


@dataclass(slots=True)
class _Client:
    """One stream of a client. `last`: its last frame. `watermark_ns`: the watermark that every partition knows."""

    route: SourceRoute
    name: str
    session: Session
    last: IngestFrame | None = None
    watermark_ns: int = 0


class MemoryClients:
    """All clients of a test. Methods return the resulting records, each with its topic and partition."""

    def __init__(self, plan: Plan, partitions: int) -> None:
        self._plan = plan
        self._partitions = partitions
        self._sources = {source.name: source for source in plan.sources}
        self._clients: dict[tuple[str, str], _Client] = {}
        self._ended: set[tuple[str, str]] = set()

    def connect(self, frames: Iterable[ClientFrame], now_ns: int) -> Iterator[Append]:
        """Opens the sessions of the clients of these frames, so that the watermark waits for each of them."""
        for source, name in dict.fromkeys((each.source, each.client) for each in frames):
            if (source, name) not in self._clients and (source, name) not in self._ended:
                yield from self._connect(source, name, now_ns)

    def connect_all(self, now_ns: int) -> Iterator[Append]:
        """Connects one client of each source, unless there is any that has not ended."""
        if not self._clients:
            for source in self._sources:
                names = chain([CLIENT], (f"{CLIENT}-{number}" for number in count(2)))
                name = next(each for each in names if (source, each) not in self._ended)
                yield from self._connect(source, name, now_ns)

    def send(self, sent: ClientFrame, now_ns: int) -> Iterator[Append]:
        """Sends a frame of a connected client. Raises CaseError for messages that its source does not take."""
        if (sent.source, sent.client) in self._ended:
            raise CaseError(
                f"client {sent.client!r} of source {sent.source!r} has ended its stream, and none returns under its"
                f" name: give another one, frame({sent.source!r}, ..., client=...)"
            )
        client = self._clients[sent.source, sent.client]
        sequence = 1 if client.last is None else client.last.sequence + 1
        client.last = _ingest_frame(client.route.source, sent, sequence, now_ns)
        yield from self._take(client, client.last, now_ns)

    def resend(self, now_ns: int) -> Iterator[Append]:
        """Each client reconnects, and resends its last frame."""
        for client in self._clients.values():
            if client.last is not None:
                acknowledged = SequenceNumber(client.last.sequence - 1)
                client.session = self._session(client.route, client.name, acknowledged)
                yield from client.session.open(now_ns / _S_NS, now_ns, acknowledged).appends
                yield from self._take(client, client.last, now_ns)

    def pass_watermark(self, step: WatermarkInput, now_ns: int) -> Iterator[Append]:
        """Moves the watermark of the selected clients. Raises CaseError where it would go back."""
        selected = [client for _, client in self._selected(step)]
        if all(client.watermark_ns > step.at_ns for client in selected):
            reached = ", ".join(f"{each.session.origin!r} at {each.watermark_ns}" for each in selected)
            raise CaseError(f"{_described(step)} goes back: event time is later already ({reached})")
        for client in selected:
            yield from self._tick(client, step.at_ns, now_ns)

    def end(self, step: EndOfStream, now_ns: int) -> Iterator[Append]:
        """The selected clients have finished: their senders tell every partition that knows them."""
        for key, client in self._selected(step):
            del self._clients[key]
            self._ended.add(key)
            yield from client.session.end(now_ns / _S_NS, now_ns).appends

    def _selected(self, step: WatermarkInput | EndOfStream) -> list[tuple[tuple[str, str], _Client]]:
        """The clients that a step selects; those of stages without event time have no watermark. Raises CaseError."""
        found = [
            (key, client)
            for key, client in self._clients.items()
            if step.source in (None, key[0])
            and step.client in (None, key[1])
            and (client.route.needs_time or isinstance(step, EndOfStream))
        ]
        if not found:
            raise CaseError(
                f"{_described(step)}: no such client has sent anything, or it has ended its stream"
            )
        return found

    def _connect(self, source: str, name: str, now_ns: int) -> Iterator[Append]:
        stage = self._plan.stage_of(source)
        route = SourceRoute(
            self._sources[source],
            stage_topic(self._plan.application, stage.name),
            dead_letter_topic(self._plan.application),
            self._partitions,
            FRAME_BYTES_MAX,
            needs_time=stage.needs_time,
            judges_lateness=stage.judges_lateness,
            needs_each_watermark=stage.needs_each_watermark,
        )
        client = _Client(route, name, self._session(route, name, 0))
        self._clients[source, name] = client
        yield from client.session.open(now_ns / _S_NS, now_ns, SequenceNumber(0)).appends
        if route.needs_time:  # every partition knows every client, however many there are
            yield from self._ticks(client, now_ns)

    def _session(self, route: SourceRoute, name: str, acknowledged: int) -> Session:
        hello = Hello(source=route.source.name, stream=name, acknowledged=acknowledged)
        return Session(route, hello, [-1] * self._partitions)

    def _take(self, client: _Client, frame: IngestFrame, now_ns: int) -> Iterator[Append]:
        try:
            taken = client.session.take(frame, now_ns / _S_NS, now_ns)
        except Refusal as refusal:
            raise CaseError(f"the sender refuses the frame: {refusal}") from None
        yield from taken.appends
        known = {append.partition for append in taken.appends if not append.opens}
        yield from self._tick(client, taken.watermark_ns, now_ns, known)

    def _tick(
        self, client: _Client, watermark_ns: int, now_ns: int, known: Collection[int] = ()
    ) -> Iterator[Append]:
        """Every partition gets it at once; a real sender waits 0.2 s for a next frame that may carry it."""
        if watermark_ns > client.watermark_ns:
            client.watermark_ns = watermark_ns
            yield from self._ticks(client, now_ns, known)

    def _ticks(self, client: _Client, now_ns: int, known: Collection[int] = ()) -> Iterator[Append]:
        session, source = client.session, client.route.source.name
        watermarks = {session.origin: client.watermark_ns}
        value = tick_record(source, now_ns, watermarks, generation=session.generation)
        for partition in range(self._partitions):
            if partition not in known:
                yield Append(client.route.stage_topic, partition, value, partition)


def newest_ns(plan: Plan, frames: Iterable[ClientFrame]) -> int:
    """The newest event time of messages, Unix ns, as the sender determines it; 0 where none has one."""
    sources = {source.name: source for source in plan.sources}
    newest = 0
    for sent in frames:
        source = sources[sent.source]
        if source.event_time.of is None:
            continue
        with suppress(SchemaError):  # it is raised where the frame is sent
            body = _body(source, sent)
            latest_ns = CLOCK_NS_MAX - source.event_time.max_lead_ns
            newest = max(newest, judge_event_times(source, body, latest_ns).highest_ns)
    return newest


def _body(source: Source, sent: ClientFrame) -> Body:
    """The messages of a frame, as the session reads them. Raises SchemaError."""
    if isinstance(sent.messages[0], bytes):
        return read_body(source, IngestFrame(rows=Rows(messages=sent.messages)))
    return Body(Columns.of_messages(source.schema, sent.messages))


def _ingest_frame(source: Source, sent: ClientFrame, sequence: int, now_ns: int) -> IngestFrame:
    if isinstance(sent.messages[0], bytes):
        return IngestFrame(sequence=sequence, sent_ns=now_ns, rows=Rows(messages=sent.messages))
    try:
        columns = Columns.of_messages(source.schema, sent.messages).payload()
    except SchemaError as error:
        raise CaseError(f"source {source.name!r}: {error}: {sent.messages!r}") from None
    return IngestFrame(sequence=sequence, sent_ns=now_ns, schema=source.schema.fingerprint, columns=columns)


def _described(step: WatermarkInput | EndOfStream) -> str:
    selected = [
        f"{name}={value!r}" for name, value in (("source", step.source), ("client", step.client)) if value
    ]
    if isinstance(step, EndOfStream):
        return f"end_stream({', '.join(selected)})"
    return f"watermark({', '.join([str(step.at_ns), *selected])})"
