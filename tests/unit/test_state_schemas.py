"""A state is taken over only under an equal schema, or by the migration of the application."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from typing import Any

import pytest

import bettong
from bettong import Application, ApplicationError
from bettong.application.plan import plan
from bettong.errors import StateChangedError
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from tests.samples.worker import data, fold, results, worker


@dataclass
class Item:
    key: str
    value: int


@dataclass
class Sum:
    key: str
    total: int


@dataclass
class Kept:
    total: int = 0


@dataclass(frozen=True, slots=True)
class FixedItem:
    key: bettong.i64
    value: bettong.i64


@dataclass
class FixedSum:
    total: bettong.i64


@dataclass
class Wider:
    total: int = 0
    count: int = 0


def add(item: Item, kept: Kept) -> Sum:
    kept.total += item.value
    return Sum(item.key, kept.total)


def add_otherwise(item: Item, kept: Kept) -> Sum:
    kept.total -= -item.value
    return Sum(item.key, kept.total)


def add_wider(item: Item, kept: Wider) -> Sum:
    kept.total += item.value
    kept.count += 1
    return Sum(item.key, 100 * kept.total + kept.count)


def made(
    function: Callable[..., Any] = add, state: Any = Kept, key: Any = "key", **more: Any
) -> PartitionWorker:
    app = Application("meters")
    app.source("in", schema=Item, key=key).stateful(function, state=state, name="fold", **more).sink("out")
    (stage,) = plan(app).stages
    return worker(program(stage, compiled=False))


def old(**more: Any) -> bytes:
    """The snapshot of a worker that has seen 5 for key k."""
    one = made(**more)
    fold(one, [data("in/a", 1, [Item("k", 5)])])
    return one.snapshot()


def after(one: PartitionWorker, snapshot: bytes) -> list[int]:
    """The output for one more message of the key."""
    one.restore(snapshot)
    records = fold(one, [data("in/a", 2, [Item("k", 2)])])
    return [each.total for each in results(records, "meters.sink.out", Sum)]


def test_an_equal_application_goes_on_also_with_other_code() -> None:
    assert after(made(), old()) == [7]
    assert after(made(add_otherwise), old()) == [7]
    assert made().restore(old()) == []
    assert made(add_otherwise).restore(old()) == ["fold"]


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"version": 2}, ["version 1", "version 2"]),
        ({"function": add_wider, "state": Wider}, ["Kept {total: int}", "Wider {total: int, count: int}"]),
        ({"key": "value"}, ["by key", "by value"]),
    ],
)
def test_what_has_changed_is_refused_and_named(changed: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(StateChangedError, match="'fold' has changed") as caught:
        made(**changed).restore(old())
    for each in ("meters/in/0 at 1", "migrate=", "bettong state reset", *names):
        assert each in str(caught.value)


def test_a_migration_makes_new_states_of_old_ones_and_they_are_saved_as_new() -> None:
    seen: list[tuple[Any, int]] = []

    def migrate(kept: Any, version: int) -> Wider:
        seen.append((kept.total, version))
        return Wider(total=kept.total, count=10)

    def wider() -> PartitionWorker:
        return made(add_wider, Wider, version=3, migrate=migrate)

    one = wider()
    assert after(one, old(version=2)) == [711]
    assert seen == [(5, 2)]
    _, data_ = one.increment()
    again = wider()
    again.restore(data_)
    assert again.snapshot() == one.snapshot()
    assert seen == [(5, 2)], "migrated once"


def test_a_state_whose_class_is_gone_can_be_migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = make_dataclass("Gone", [("total", int, 0)])
    gone.__module__ = __name__
    monkeypatch.setitem(globals(), "Gone", gone)

    def add_gone(item: Item, kept: Any) -> Sum:
        kept.total += item.value
        return Sum(item.key, kept.total)

    snapshot = old(function=add_gone, state=gone)
    monkeypatch.delitem(globals(), "Gone")
    new = made(version=2, migrate=lambda kept, _: Kept(kept.total + 1))
    assert after(new, snapshot) == [8]


@bettong.compiled
def compiled_add(item: FixedItem, kept: Kept) -> FixedSum:
    kept.total += item.value
    return FixedSum(kept.total)


@bettong.compiled
def compiled_add_wider(item: FixedItem, kept: Wider) -> FixedSum:
    kept.total += item.value
    kept.count += 1
    return FixedSum(100 * kept.total + kept.count)


def test_compiled_states_migrate_too() -> None:
    def of(function: Any, state: Any, **more: Any) -> PartitionWorker:
        app = Application("meters")
        items = app.source("in", schema=FixedItem, key="key")
        items.stateful(function, state=state, name="fold", **more).sink("out")
        return worker(program(plan(app).stages[0], compiled=True))

    one = of(compiled_add, Kept)
    fold(one, [data("in/a", 1, [FixedItem(3, 5)])])
    with pytest.raises(StateChangedError, match="migrate="):
        of(compiled_add_wider, Wider).restore(one.snapshot())
    new = of(compiled_add_wider, Wider, migrate=lambda kept, _: Wider(kept.total, 10))
    new.restore(one.snapshot())
    records = fold(new, [data("in/a", 2, [FixedItem(3, 2)])])
    assert [each.total for each in results(records, "meters.sink.out", FixedSum)] == [711]


@pytest.mark.parametrize("version", [0, -1, 2**31, "2", True, None])
def test_a_version_is_a_number(version: Any) -> None:
    with pytest.raises(ApplicationError, match="stateful 'fold': version="):
        made(version=version)


def test_a_migration_takes_two() -> None:
    with pytest.raises(ApplicationError, match="stateful 'fold': migrate="):
        made(migrate=lambda kept: kept)
