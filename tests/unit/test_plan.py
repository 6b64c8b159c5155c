"""The plan: how an application is divided into stages, and how they are connected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from bettong import Application, ApplicationError
from bettong.application.plan import Plan, Stage, plan


@dataclass
class Item:
    key: str
    other: str
    size: int


@dataclass
class Note:
    key: str


class Seen:
    """A state."""


def same(item: Item) -> Item:
    return item


def again(item: Item) -> Item:
    return item


def keep(item: Item) -> bool:
    return bool(item.size)


def split(item: Item) -> Iterator[Item]:
    yield item


def fold(item: Item, seen: Seen) -> Item:
    del seen
    return item


def on_item(item: Item, seen: Seen) -> Item:
    del seen
    return item


def on_note(note: Note, seen: Seen) -> None:
    del note, seen


@pytest.fixture
def app() -> Application:
    return Application("app")


def wiring(stage: Stage) -> tuple[list[str], dict[str, tuple[str, ...]], list[tuple[str, str, str | None]]]:
    """What enters; what each operator reads; what leaves: streams, target, stage of the target."""
    return (
        [each.stream for each in stage.inputs],
        {each.node.name: each.reads for each in stage.operators},
        [("+".join(each.streams), each.target.name, each.stage) for each in stage.outputs],
    )


def stages(
    app: Application,
) -> dict[str, tuple[list[str], dict[str, tuple[str, ...]], list[tuple[str, str, str | None]]]]:
    return {stage.name: wiring(stage) for stage in plan(app).stages}


def test_a_source_straight_into_a_sink_is_one_stage(app: Application) -> None:
    app.source("in", schema=Item).sink("out")
    assert stages(app) == {"in": (["in"], {}, [("in", "out", None)])}


def test_a_chain_without_a_new_key_is_one_stage(app: Application) -> None:
    app.source("in", schema=Item, key="key").map(same).filter(keep).flat_map(split).stateful(
        fold, state=Seen
    ).sink("out")
    reads = {"same": ("in",), "keep": ("same",), "split": ("keep",), "fold": ("split",)}
    assert stages(app) == {"in": (["in"], reads, [("fold", "out", None)])}


def test_a_new_key_cuts(app: Application) -> None:
    app.source("in", schema=Item).map(same).key_by("key", name="by").stateful(fold, state=Seen).sink("out")
    assert stages(app) == {
        "in": (["in"], {"same": ("in",)}, [("same", "by", "by")]),
        "by": (["by"], {"fold": ("by",)}, [("fold", "out", None)]),
    }


def test_keys_of_inputs_are_those_of_sources_and_of_key_by(app: Application) -> None:
    app.source("in", schema=Item, key="other").key_by("key", name="by").sink("out")
    assert [(each.stream, each.key) for stage in plan(app).stages for each in stage.inputs] == [
        ("in", "other"),
        ("by", "key"),
    ]


def test_merged_sources_share_a_stage_and_are_read_one_by_one(app: Application) -> None:
    items, notes = app.source("items", schema=Item, key="key"), app.source("notes", schema=Note, key="key")
    handlers: dict[Any, Any] = {items: on_item, notes: on_note}
    items.merge(notes).stateful(handlers, state=Seen, name="both").sink("out")
    assert stages(app) == {
        "items": (["items", "notes"], {"both": ("items", "notes")}, [("both", "out", None)])
    }


def test_a_merge_across_stages_pulls_the_source_into_the_later_stage(app: Application) -> None:
    """`late` is first read beside what `key_by` gives, so its frames enter that stage's log."""
    early, late = app.source("early", schema=Item), app.source("late", schema=Note, key="key")
    keyed = early.map(same).key_by("key", name="by")
    keyed.merge(late).stateful({keyed: on_item, late: on_note}, state=Seen, name="both").sink("out")
    planned = plan(app)
    assert stages(app) == {
        "early": (["early"], {"same": ("early",)}, [("same", "by", "late")]),
        "late": (["late", "by"], {"both": ("by", "late")}, [("both", "out", None)]),
    }
    assert planned.stage_of("by").name == planned.stage_of("late").name == "late"


def test_merges_of_merges_are_resolved(app: Application) -> None:
    one, two, three = (app.source(name, schema=Item, key="key") for name in ("one", "two", "three"))
    one.merge(two).merge(three).stateful(fold, state=Seen).sink("out")
    assert stages(app)["one"][1] == {"fold": ("one", "two", "three")}


def test_a_stream_may_fan_out_to_computations_and_sinks(app: Application) -> None:
    source = app.source("in", schema=Item)
    source.map(same).sink("first")
    source.map(again).sink("second")
    source.sink("raw")
    assert stages(app) == {
        "in": (
            ["in"],
            {"same": ("in",), "again": ("in",)},
            [("same", "first", None), ("again", "second", None), ("in", "raw", None)],
        )
    }


def test_a_fan_out_that_is_merged_again_stays_one_stage(app: Application) -> None:
    source = app.source("in", schema=Item)
    source.map(same).merge(source.map(again)).sink("out")
    assert stages(app)["in"][2] == [("same+again", "out", None)]


def test_one_stream_keyed_twice_feeds_two_stages(app: Application) -> None:
    source = app.source("in", schema=Item)
    source.key_by("key", name="a").sink("out-a")
    source.key_by("other", name="b").sink("out-b")
    assert stages(app) == {
        "in": (["in"], {}, [("in", "a", "a"), ("in", "b", "b")]),
        "a": (["a"], {}, [("a", "out-a", None)]),
        "b": (["b"], {}, [("b", "out-b", None)]),
    }


def test_unconnected_sources_are_stages_of_their_own(app: Application) -> None:
    app.source("one", schema=Item).sink("out-one")
    app.source("two", schema=Item).sink("out-two")
    assert list(stages(app)) == ["one", "two"]


def test_a_late_join_makes_one_stage_of_two_groups(app: Application) -> None:
    one, two = app.source("one", schema=Item, key="key"), app.source("two", schema=Item, key="key")
    first, second = one.map(same), two.map(again)
    first.merge(second).stateful(fold, state=Seen).sink("out")
    assert stages(app) == {
        "one": (
            ["one", "two"],
            {"same": ("one",), "again": ("two",), "fold": ("same", "again")},
            [("fold", "out", None)],
        )
    }


def test_a_stream_may_come_back_into_the_log_of_its_own_stage(app: Application) -> None:
    source = app.source("in", schema=Item, key="key")
    source.merge(source.map(same).key_by("other", name="by")).stateful(fold, state=Seen).sink("out")
    assert stages(app)["in"][2] == [("same", "by", "in"), ("fold", "out", None)]


def test_every_stream_is_planned_in_exactly_one_stage(app: Application) -> None:
    source = app.source("in", schema=Item)
    source.map(same).key_by("key", name="by").stateful(fold, state=Seen).sink("out")
    planned: Plan = plan(app)
    assert planned.stage("by") is planned.stage_of("by")
    assert [each.name for each in planned.sources] == ["in"]
    assert [each.name for each in planned.sinks] == ["out"]


def test_a_plan_needs_a_finished_application(app: Application) -> None:
    app.source("in", schema=Item).map(same)
    with pytest.raises(ApplicationError, match="'same' leads to no sink"):
        plan(app)
