"""The driver's part of reference tables: what is stored, named in logs and removed, whatever fails in between."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong import metrics
from bettong.application.plan import plan
from bettong.application.reference_source import ReferenceSource
from bettong.edges.directory_versions import DirectoryVersions
from bettong.errors import LogUnavailableError, ReferenceLoadError, StoreUnavailableError
from bettong.identifiers import ReferenceVersion
from bettong.snapshots.references import Offsets, ReferenceStore
from bettong.worker.references.versions import ReferenceTables
from bettong_processor.references.kept import KeptTable
from bettong_processor.references.loading import loaded_bytes
from bettong_processor.references.lost import LostVersions
from bettong_processor.references.reloading import Reloading, store_first
from tests.samples.reference_join import Price, app_of
from tests.waiting import eventually

LOG = structlog.get_logger()
PARTITIONS = 2


def source_of(load: Callable[..., Any], every_ns: int | None = None) -> ReferenceSource:
    (stage,) = plan(app_of(load=load)).stages
    return replace(stage.references["priced"], reload_every_ns=every_ns)


def no_spark() -> object:
    raise AssertionError("nobody asked for Spark")


def table_of(cents: int) -> bytes:
    return loaded_bytes("priced", source_of(lambda: [Price("a", cents)]), no_spark)


SOURCE = source_of(list)
SERIES = SOURCE.series("priced")


@dataclass
class Logs:
    """A log a partition: versions that records name, None for a message. `fails_at`: the partition that fails."""

    values: list[list[ReferenceVersion | None]] = field(
        default_factory=lambda: [[] for _ in range(PARTITIONS)]
    )
    begin: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    fails_at: int | None = None

    def name(self, stage: str, version: ReferenceVersion) -> Offsets:
        assert stage == "orders"
        for partition, log in enumerate(self.values):
            if partition == self.fails_at:
                raise LogUnavailableError("the log is away")
            log.append(version)
        return {partition: len(log) - 1 for partition, log in enumerate(self.values)}

    def begins(self, _stage: str) -> Mapping[int, int]:
        return dict(enumerate(self.begin))

    def seen(self, partition: int, first: ReferenceVersion) -> list[ReferenceVersion]:
        """By offset, what a fold sees at a record and before it; at last, what comes next would see."""
        found = [first]
        for each in self.values[partition]:
            found.append(max(found[-1], each) if each is not None else found[-1])
        return found


def kept(
    store: ReferenceStore, logs: Logs, load: Callable[[], bytes], source: ReferenceSource = SOURCE
) -> KeptTable:
    return KeptTable("priced", "orders", source, load, store, logs.name, logs.begins, LOG)


def never() -> bool:
    return False


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("load"), st.integers(1, 3)),
            st.tuples(st.just("away"), st.sampled_from([0, 1, None])),
            st.tuples(st.just("message"), st.integers(0, PARTITIONS - 1)),
            st.tuples(st.just("trim"), st.integers(0, 12)),
            st.tuples(st.just("restart"), st.none()),
        ),
        max_size=25,
    ),
    st.booleans(),
)
def test_what_a_fold_may_see_is_kept_and_what_nobody_sees_goes(
    steps: list[tuple[str, Any]],
    is_restarted: bool,  # noqa: FBT001
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, logs = ReferenceStore(DirectoryVersions(Path(folder))), Logs()
        table = kept(store, logs, lambda: table_of(1))
        table.store_first(never)
        (first,) = store.versions(SERIES)
        if is_restarted:  # before the first version was named
            table = kept(store, logs, table.load)
        else:
            table.refresh(never)
        for what, value in steps:
            if what == "away":
                logs.fails_at = value
            elif what == "message":
                logs.values[value].append(None)
            elif what == "trim":
                logs.begin = [
                    min(value + begin, len(log)) for begin, log in zip(logs.begin, logs.values, strict=True)
                ]
            elif what == "restart":
                table = kept(store, logs, table.load)
            else:
                table.load = lambda cents=value: table_of(cents)  # type: ignore[misc]
                try:
                    table.refresh(never)
                except LogUnavailableError:
                    continue
                for partition in range(PARTITIONS):
                    newest = logs.seen(partition, first)[-1]
                    assert store.load(newest) == table_of(value)
            there = set(store.versions(SERIES))
            for partition, begin in enumerate(logs.begin):
                assert set(logs.seen(partition, first)[begin:]) <= there
        logs.fails_at = None
        table.refresh(never)
        logs.begin = [len(log) for log in logs.values]
        table.refresh(never)
        assert len(store.versions(SERIES)) == 1


def test_the_first_table_is_named_without_being_loaded_again_and_an_equal_one_names_nothing(
    tmp_path: Path,
) -> None:
    store, logs, calls = ReferenceStore(DirectoryVersions(tmp_path)), Logs(), list[int]()

    def load() -> bytes:
        calls.append(1)
        return table_of(1)

    table = kept(store, logs, load)
    assert not table.has_version()
    table.store_first(never)
    assert (table.has_version(), table.is_fresh) == (True, True)
    for number in range(3):
        table.refresh(never)
        assert len(calls) == number + 1
    (first,) = store.versions(SERIES)
    assert (first.number, logs.values) == (1, [[first], [first]])


def test_each_run_names_the_newest_version_once_more(tmp_path: Path) -> None:
    """The log may have been replaced by then: the join moved to another stage, or the topic was created anew."""
    store, logs = ReferenceStore(DirectoryVersions(tmp_path)), Logs()
    kept(store, logs, lambda: table_of(1)).store_first(never)
    kept(store, logs, lambda: table_of(2)).refresh(never)
    moved = Logs()
    table = kept(store, moved, lambda: table_of(2))
    table.refresh(never)
    table.refresh(never)
    newest = store.versions(SERIES)[-1]
    assert moved.values == [[newest], [newest]]


def test_a_first_version_that_another_has_stored_meanwhile_stays(tmp_path: Path) -> None:
    store, logs = ReferenceStore(DirectoryVersions(tmp_path)), Logs()

    def load() -> bytes:
        kept(store, logs, lambda: table_of(7)).store_first(never)
        return table_of(1)

    table = kept(store, logs, load)
    table.store_first(never)
    (only,) = store.versions(SERIES)
    assert (store.load(only), table.is_fresh) == (table_of(7), False)


def test_a_run_that_stops_while_it_loads_stores_nothing(tmp_path: Path) -> None:
    store, logs = ReferenceStore(DirectoryVersions(tmp_path)), Logs()
    kept(store, logs, lambda: table_of(1)).store_first(never)
    kept(store, logs, lambda: table_of(2)).refresh(lambda: True)
    assert ([each.number for each in store.versions(SERIES)], logs.values) == ([1], [[], []])


def failing() -> Any:
    raise OSError("s3://prices: no such bucket\nand a stack")


def taking_spark(spark: Any) -> Any:
    return spark


@pytest.mark.parametrize(
    ("load", "text"),
    [
        (failing, r"^reference table 'priced': load\(\) failed: OSError: s3://prices: no such bucket$"),
        (lambda: 7, r"reference table 'priced': load\(\) returned int; expected an Arrow table"),
        (lambda: pa.table({"sku": ["a"]}), r"column\(s\) cents missing; expected sku, cents, found sku"),
        (lambda: pa.table({"sku": ["a", "a"], "cents": [1, 2]}), "key 'sku': 'a' comes twice"),
    ],
)
def test_a_load_that_gives_no_table_is_said_in_a_line(load: Callable[[], Any], text: str) -> None:
    with pytest.raises(ReferenceLoadError, match=text):
        loaded_bytes("priced", source_of(load), no_spark)


def test_a_function_that_wants_sparks_session_gets_it() -> None:
    rows = [Price("a", 1)]
    assert loaded_bytes("priced", source_of(taking_spark), lambda: rows) == table_of(1)


def test_a_version_is_what_a_worker_reads(tmp_path: Path) -> None:
    store = ReferenceStore(DirectoryVersions(tmp_path))
    kept(store, Logs(), lambda: table_of(5)).store_first(never)
    tables = ReferenceTables(store)
    assert tables.table(SOURCE, tables.first(SERIES)).columns.messages() == [Price("a", 5)]


def test_first_tables_are_awaited_and_what_they_fail_at_is_raised(tmp_path: Path) -> None:
    store, logs, said, go_on = (
        ReferenceStore(DirectoryVersions(tmp_path)),
        Logs(),
        list[str](),
        threading.Event(),
    )

    def waiting(text: str) -> None:
        said.append(text)
        go_on.set()

    def load() -> bytes:
        assert go_on.wait(30)
        return table_of(1)

    store_first([kept(store, logs, load)], LostVersions(), is_stopping=never, waiting=waiting, poll_s=0.001)
    assert set(said) == {"loads reference table 'priced'"}
    assert [each.number for each in store.versions(SERIES)] == [1]
    store_first(
        [kept(store, logs, failing)], LostVersions(), is_stopping=never, waiting=waiting, poll_s=0.001
    )  # it is there
    empty = ReferenceStore(DirectoryVersions(tmp_path / "empty"))
    with pytest.raises(OSError, match="no such bucket"):
        store_first(
            [kept(empty, logs, failing)], LostVersions(), is_stopping=never, waiting=waiting, poll_s=0.001
        )


def test_a_stop_does_not_wait_for_a_first_table(tmp_path: Path) -> None:
    never_set, store = threading.Event(), ReferenceStore(DirectoryVersions(tmp_path))

    def load() -> bytes:
        never_set.wait(30)
        return table_of(1)

    with pytest.raises(ReferenceLoadError, match="not loaded before this processor stopped"):
        store_first(
            [kept(store, Logs(), load)],
            LostVersions(),
            is_stopping=lambda: True,
            waiting=lambda _: None,
            poll_s=0.001,
        )
    never_set.set()
    eventually(
        lambda: "first table priced" not in {each.name for each in threading.enumerate()},
        what="the load ends",
    )
    assert store.versions(SERIES) == [], "another processor may lead by then, and have stored another table"


class Run:
    """A schedule that does nothing."""

    name = "run"

    def __init__(self) -> None:
        self.calls: list[str] = []

    def waits_for(self) -> str:
        return "nobody"

    def metrics(self) -> Mapping[str, str | float]:
        return {"lag": 3.0}

    def ended(self, wait_s: float) -> bool:
        self.calls.append(f"ended {wait_s}")
        return False

    def leave(self) -> None:
        self.calls.append("leave")

    def stop(self, wait_s: float) -> None:
        self.calls.append(f"stop {wait_s}")


def test_a_table_is_loaded_again_and_a_failure_is_said_until_it_is_mended(tmp_path: Path) -> None:
    store, logs, run = ReferenceStore(DirectoryVersions(tmp_path)), Logs(), Run()
    answers: list[Callable[[], bytes]] = [lambda: table_of(1)]
    every = source_of(list, every_ns=1_000_000)

    def load() -> bytes:
        return answers[-1]()

    table = kept(store, logs, load, every)
    table.store_first(never)
    reloading = Reloading(run, [table], LostVersions(), clock=lambda: 86_400.0, log=LOG)

    def fail() -> bytes:
        raise ReferenceLoadError("load() failed: no such bucket")

    def fail_strangely() -> bytes:
        raise ValueError("what nobody foresaw")

    answers.append(fail)
    since = "priced: not loaded again since 1970-01-02 00:00:00 UTC: "
    eventually(lambda: reloading.faults() == f"{since}load() failed: no such bucket", what="it says so")
    ages = {f"{metrics.REFERENCE_AGE.name}/priced": 0.0}
    assert reloading.metrics() == {"lag": 3.0, metrics.REFERENCES.name: reloading.faults(), **ages}
    answers.append(fail_strangely)
    eventually(
        lambda: reloading.faults() == f"{since}ValueError: what nobody foresaw", what="it says that, too"
    )
    answers.append(lambda: table_of(2))
    eventually(lambda: not reloading.faults(), what="it is mended")
    one, two = store.versions(SERIES)
    assert (store.load(two), logs.values) == (table_of(2), [[one, two], [one, two]])
    assert (reloading.name, reloading.waits_for(), reloading.ended(0.5)) == ("run", "nobody", False)
    reloading.stop(3.0)
    reloading.leave()
    assert run.calls == ["ended 0.5", "stop 3.0", "leave"]


def test_a_load_that_does_not_end_is_said(tmp_path: Path) -> None:
    store, now_s, go_on = ReferenceStore(DirectoryVersions(tmp_path)), [0.0], threading.Event()
    begun = threading.Event()

    def load() -> bytes:
        begun.set()
        assert go_on.wait(30)
        return table_of(1)

    reloading = Reloading(Run(), [kept(store, Logs(), load)], LostVersions(), clock=lambda: now_s[0], log=LOG)
    assert begun.wait(30)
    assert reloading.faults() == ""
    now_s[0] = 75.0
    assert reloading.faults() == "priced: load() has not ended for 75 s"
    go_on.set()
    eventually(lambda: not reloading.faults(), what="it has ended")
    reloading.leave()


def test_without_a_period_a_table_is_loaded_once_a_run_and_not_right_after_the_first(tmp_path: Path) -> None:
    store, logs, calls = ReferenceStore(DirectoryVersions(tmp_path)), Logs(), list[int]()

    def load() -> bytes:
        calls.append(1)
        return table_of(1)

    first = kept(store, logs, load)
    first.store_first(never)
    for table in (first, kept(store, logs, load)):  # one driver after the other, for one writes at a time
        Reloading(Run(), [table], LostVersions(), clock=lambda: 0.0, log=LOG)
        eventually(
            lambda: "table priced" not in {each.name for each in threading.enumerate()},
            what="its thread ends",
        )
    assert calls == [1, 1]


def test_a_store_that_is_away_is_a_failure_like_another(tmp_path: Path) -> None:
    class Away(DirectoryVersions):
        def names(self, folder: str) -> list[str]:  # noqa: ARG002 - as NamedBytes
            raise StoreUnavailableError("Redis is away")

    table = kept(ReferenceStore(Away(tmp_path)), Logs(), lambda: table_of(1))
    reloading = Reloading(Run(), [table], LostVersions(), clock=lambda: 0.0, log=LOG)
    eventually(lambda: reloading.faults().endswith("Redis is away"), what="it says so")
    reloading.stop(1.0)
