"""A task opens, reads and delivers, and reopens after any failure."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self, cast

import pytest
import structlog
from structlog.testing import capture_logs

from bettong.edges.kafka_log import LogReader, LogWriter, Record
from bettong.errors import LogTruncatedError, LogUnavailableError
from bettong.identifiers import TopicPartition
from bettong_receiver.delivery.connector import ConnectorUnavailableError, Refused, SinkBatch, SinkConnector
from bettong_receiver.delivery.route import Route, SinkInput
from bettong_receiver.delivery.task import SinkTask
from bettong_receiver.errors import SinkError
from bettong_receiver.progress import SinkPartition
from tests.samples.result_frames import rows

KEY: SinkPartition = SinkPartition("raw", 0)
INPUT = SinkInput("raw", "app.sink.raw", lambda frame: list(frame.rows or ()))


def log(count: int) -> list[bytes]:
    return [rows([b"<%d>" % n], origin="raw/x/0", sequence=n + 1, previous=n) for n in range(count)]


class Reader:
    """A reader that returns one record of a list per poll; sets `stopping` after the last."""

    def __init__(self, records: Sequence[bytes], start: int, stopping: threading.Event) -> None:
        self._records, self._next, self._stopping = records, start, stopping

    def poll(self, timeout_ms: int, records_max: int) -> list[Record]:
        del timeout_ms, records_max
        if self._next == len(self._records):
            self._stopping.set()
            return []
        self._next += 1
        return [Record("app.sink.raw", 0, self._next - 1, self._records[self._next - 1])]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Store:
    """Stores messages and position together, and fails in the calls whose numbers are in `failures`.

    `open` and `deliver` are the calls. A failure comes before the call is carried out, or behind that.
    """

    def __init__(self, failures: Mapping[int, SinkError] | None = None, *, behind: bool = False) -> None:
        self.kept: list[bytes] = []
        self.position: bytes | None = None
        self.calls = 0
        self.events: list[str] = []
        self._failures = failures or {}
        self._behind = behind

    def call(self, carry_out: Callable[[], None]) -> None:
        """One call, which may fail."""
        failure = self._failures.get(self.calls)
        self.calls += 1
        if failure is None or self._behind:
            carry_out()
        if failure is not None:
            raise failure


class StoreConnector(SinkConnector[bytes]):
    """A connector to a `Store`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        assert beginnings == {KEY: 0}
        self._store.call(lambda: None)
        self._store.events.append("open")
        return {KEY: self._store.position}

    def deliver(self, batches: Sequence[SinkBatch[bytes]]) -> Refused:
        def carry_out() -> None:
            for batch in batches:
                self._store.kept += batch.messages
                self._store.position = batch.position()

        self._store.call(carry_out)
        return {}

    def finish(self) -> None:
        self._store.events.append("finish")

    def close(self) -> None:
        self._store.events.append("close")


class Waits(threading.Event):
    """A `stopping` event that records its waits, which take no time."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses_s: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.pauses_s.append(timeout)
        assert len(self.pauses_s) < 100, "it tries for ever"
        return self.is_set()


def unavailable(*calls: int) -> dict[int, SinkError]:
    return {each: ConnectorUnavailableError("it is away") for each in calls}


def run(
    *stores: Store,
    required: bool = False,
    open_reader: Callable[..., Any] | None = None,
    records: Sequence[bytes] = (),
    monotonic_s: Callable[[], float] = lambda: 0.0,
) -> tuple[SinkTask[bytes], Waits, list[str | None]]:
    stopping, waits = Waits(), list[str | None]()

    def opened(starts: Mapping[TopicPartition, int], fetch_bytes_max: int) -> LogReader:
        assert fetch_bytes_max == 1000
        return cast("LogReader", Reader(records, starts[TopicPartition("app.sink.raw", 0)], stopping))

    def no_writer() -> LogWriter:
        raise AssertionError("nothing is refused")

    task = SinkTask(
        Route("sink raw", [INPUT], [partial(StoreConnector, each) for each in stores], 1000, required),
        "app",
        open_reader=open_reader or opened,
        open_writer=no_writer,
        monotonic_s=monotonic_s,
        on_wait=waits.append,
        on_delivered=lambda _batches, _read_before_s: None,
        log=structlog.get_logger(),
    )
    task.run({KEY: 0}, stopping)
    return task, stopping, waits


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("failing", range(5))
def test_a_failure_of_any_call_loses_and_repeats_nothing(failing: int, *, behind: bool) -> None:
    store = Store(unavailable(failing, failing + 1), behind=behind)
    task, _, _ = run(store, records=log(4))
    assert store.kept == [b"<0>", b"<1>", b"<2>", b"<3>"]
    assert task.offsets() == {("app.sink.raw", 0): 4}
    assert task.counts()["raw"].messages == 4


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("failing", range(5))
def test_of_two_connectors_each_gets_all_once_when_one_fails(failing: int, *, behind: bool) -> None:
    steady, shaky = Store(), Store(unavailable(failing), behind=behind)
    run(steady, shaky, records=log(4))
    assert steady.kept == shaky.kept == [b"<0>", b"<1>", b"<2>", b"<3>"]


def test_the_backoff_grows_and_is_reset_by_a_delivery() -> None:
    store = Store(unavailable(*range(9), 10))
    _, stopping, waits = run(store, records=log(2))
    assert stopping.pauses_s == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]
    assert waits[:1] == ["it is away"]
    assert waits[-1] is None
    assert store.kept == [b"<0>", b"<1>"]


def test_a_required_route_is_retried_every_second() -> None:
    store = Store(unavailable(*range(5)))
    task, stopping, waits = run(store, required=True, records=log(1))
    assert stopping.pauses_s == [0.5, 1.0, 1.0, 1.0, 1.0]
    assert waits == ["it is away"] * 5 + [None]
    assert task.opened.is_set()


def test_an_error_that_needs_an_operator_is_retried_unless_the_route_is_required() -> None:
    with capture_logs() as lines:
        run(store := Store({0: SinkError("no such table")}), records=log(1))
    assert store.kept == [b"<0>"]
    assert [(line["event"], line["route"], line["fault"]) for line in lines] == [
        ("sink is blocked by an error that needs an operator", "sink raw", "no such table")
    ]
    with pytest.raises(SinkError, match="no such table"):
        run(store := Store({0: SinkError("no such table")}), required=True)
    assert store.events == ["close"]


def test_a_stop_finishes_before_it_closes() -> None:
    run(store := Store(), records=log(1))
    assert store.events == ["open", "finish", "close"]


def test_a_truncated_log_ends_the_task_once_all_before_is_stored() -> None:
    class Broken(Reader):
        def poll(self, timeout_ms: int, records_max: int) -> list[Record]:
            if self._next == 2:
                raise LogTruncatedError("records are gone")
            return super().poll(timeout_ms, records_max)

    store = Store()
    with pytest.raises(LogTruncatedError):
        run(store, open_reader=lambda *_: Broken(log(4), 0, threading.Event()))
    assert store.kept == [b"<0>", b"<1>"]
    assert store.events == ["open", "finish", "close"]


def test_an_unavailable_log_is_waited_for() -> None:
    attempts: list[int] = []

    def away(starts: Mapping[tuple[str, int], int], _: int) -> LogReader:
        attempts.append(1)
        if len(attempts) < 3:
            raise LogUnavailableError("no broker answers")
        stopping = threading.Event()
        return cast("LogReader", _Stopped(starts[TopicPartition("app.sink.raw", 0)], stopping))

    class _Stopped(Reader):
        def __init__(self, start: int, stopping: threading.Event) -> None:
            super().__init__(log(1), start, stopping)

        def poll(self, timeout_ms: int, records_max: int) -> list[Record]:
            if self._next == 1:
                raise LogTruncatedError("the end of this test")
            return super().poll(timeout_ms, records_max)

    store = Store()
    with pytest.raises(LogTruncatedError):
        run(store, open_reader=away)
    assert store.kept == [b"<0>"]


class SlowStore(Store):
    """A connector whose calls advance the clock by given seconds, whether they fail or not."""

    def __init__(self, call_s: float, failures: Mapping[int, SinkError] | None = None) -> None:
        super().__init__(failures)
        self.now_s = 0.0
        self._call_s = call_s

    def call(self, carry_out: Callable[[], None]) -> None:
        self.now_s += self._call_s
        super().call(carry_out)


def test_a_sink_holds_up_its_task_while_it_opens_and_stores_results() -> None:
    store = SlowStore(3.0)
    task, _, _ = run(store, records=log(2), monotonic_s=lambda: store.now_s)
    assert store.kept == [b"<0>", b"<1>"]
    assert (task.held.total_s, task.held.is_held, task.delivering) == (9.0, False, 0)


def test_a_failed_sink_holds_up_its_task_until_it_stores_results_again() -> None:
    store = SlowStore(3.0, unavailable(2))
    seen: list[tuple[bool, int]] = []

    class Pauses(Waits):
        def wait(self, timeout: float | None = None) -> bool:
            seen.append((task.held.is_held, task.delivering))
            store.now_s += 60.0
            return super().wait(timeout)

    stopping = Pauses()
    task = SinkTask(
        Route("sink raw", [INPUT], [partial(StoreConnector, store)], 1000, required=False),
        "app",
        open_reader=lambda starts, _: cast(
            "LogReader", Reader(log(2), starts[TopicPartition("app.sink.raw", 0)], stopping)
        ),
        open_writer=lambda: cast("LogWriter", None),
        monotonic_s=lambda: store.now_s,
        on_wait=lambda _: None,
        on_delivered=lambda _batches, _read_before_s: None,
        log=structlog.get_logger(),
    )
    task.run({KEY: 0}, stopping)
    assert store.kept == [b"<0>", b"<1>"]
    assert seen == [(True, 1)]
    assert (task.held.total_s, task.held.is_held, task.delivering) == (5 * 3.0 + 60.0, False, 0)


def test_an_unavailable_log_is_not_counted_as_back_pressure_of_the_sink() -> None:
    store = SlowStore(3.0)

    class Opened(Reader):
        def __init__(self, start: int) -> None:
            super().__init__(log(1), start, threading.Event())

        def poll(self, timeout_ms: int, records_max: int) -> list[Record]:
            del timeout_ms, records_max
            raise LogUnavailableError("no broker answers")

    task = SinkTask(
        Route("sink raw", [INPUT], [partial(StoreConnector, store)], 1000, required=False),
        "app",
        open_reader=lambda starts, _: cast("LogReader", Opened(starts[TopicPartition("app.sink.raw", 0)])),
        open_writer=lambda: cast("LogWriter", None),
        monotonic_s=lambda: store.now_s,
        on_wait=lambda _: None,
        on_delivered=lambda _batches, _read_before_s: None,
        log=structlog.get_logger(),
    )

    class Pauses(Waits):
        def wait(self, timeout: float | None = None) -> bool:
            assert not task.held.is_held
            store.now_s += 60.0
            if len(self.pauses_s) == 2:
                self.set()
            return super().wait(timeout)

    task.run({KEY: 0}, Pauses())
    assert task.held.total_s == store.calls * 3.0 == 9.0
