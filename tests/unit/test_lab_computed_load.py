"""Loads whose expected results are computed: which results are right, and for which applications they are unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bettong.errors import LabError, SettingsError
from bettong.lab.spec import read
from bettong.lab.table_load import load_of
from tests.samples.table_loads import (
    APPLICATION,
    TWO,
    given,
    loaded,
    orders,
    part_of,
    results,
)

MEETING = """
@dataclass
class Minute:
    key: str
    start: int
    trades: int

app.source("trades", schema=Trade, key="symbol", event_time="at", out_of_order=timedelta(seconds=1)).window(
    bettong.tumbling(timedelta(seconds=1)), bettong.aggregate(Minute, trades=bettong.Count())
).sink("minutes")
"""


def assert_matches(pattern: str, text: str) -> None:
    with pytest.raises(LabError, match=pattern):
        raise LabError(text)


def test_a_result_that_is_lost_doubled_or_changed_is_seen_and_order_is_not(tmp_path: Path) -> None:
    load = loaded(tmp_path, orders())
    right = results(load)["totals"]
    assert load.wrong(given({"totals": right[::-1]})) == ""
    for wrong, says in (
        (right[:-1], "1 are missing"),
        ([*right, right[3]], "1 were not expected"),
        ([right[0].replace(b"S", b"T"), *right[1:]], "1 are missing, such as .*1 were not"),
        ([right[0] + right[1], *right[2:]], "2 are missing, such as .*1 were not"),
    ):
        assert_matches(says, load.wrong(given({"totals": wrong})))


def test_a_mix_has_each_source_in_its_share_and_windows_close_at_the_end(tmp_path: Path) -> None:
    load = loaded(tmp_path, TWO.replace("{any}", "false"), behind=MEETING)
    assert [part_of(load, number).messages for number in (0, 1)] == [800, 200]
    found = results(load)
    assert len(found["totals"]) == 800
    assert sum(json.loads(each)["trades"] for each in found["minutes"]) == 200


MERGED = """
trades = app.source("trades", schema=Trade, key="symbol", event_time="at")
def remember(trade: Trade, state: Sum) -> Total:
    state.orders += 1
    return Total(trade.symbol, state.orders, 0.0)
orders.merge(trades).stateful({orders: add, trades: remember}, state=Sum, name="both").sink("met")
"""
BEHIND = """
@dataclass
class Size:
    size: bettong.i32
    total: int = 0
def per_size(total: Total, sum: Sum) -> Total:
    sum.orders += 1
    return Total(total.symbol, sum.orders, 0.0)
orders.stateful(add, state=Sum, name="again").key_by("orders", name="by-orders").stateful(
    per_size, state=Sum
).sink("sizes")
"""
TTL = """
orders.stateful(add, state=Sum, ttl=timedelta(minutes=1), name="brief").sink("short")
"""
LOG_TIMER = """
@dataclass
class Waiting:
    at: bettong.LogTimer = bettong.NEVER
def wait(order: Order, state: Waiting) -> Total | None:
    return None
def rang(fired: bettong.Fired[str], state: Waiting) -> Total:
    return Total(fired.key, 0, 0.0)
orders.stateful(wait, state=Waiting, timers={"at": rang}).sink("rang")
"""
BY_INTAKE = """
@dataclass
class Minute:
    key: str
    start: int
    trades: int
app.source("trades", schema=Trade, key="symbol").window(
    bettong.tumbling(timedelta(seconds=1)), bettong.aggregate(Minute, trades=bettong.Count())
).sink("minutes")
"""


@pytest.mark.parametrize(
    ("behind", "says"),
    [
        (MERGED, "stateful 'both' keeps a state of messages of 'orders', 'trades'"),
        (
            BEHIND,
            "stateful 'per_size' keeps a state behind 'by-orders', where messages of several partitions meet",
        ),
    ],
    ids=["merged", "key_by"],
)
def test_what_may_depend_on_order_is_refused_unless_it_is_said_that_it_does_not(
    behind: str, says: str, tmp_path: Path
) -> None:
    tables = TWO if behind is MERGED else "[load]\nany_order = {any}\n" + orders()
    with pytest.raises(SettingsError, match=f"x, load: .*{says}.*set any_order = true"):
        loaded(tmp_path, tables.replace("{any}", "false"), behind=behind)
    load = loaded(tmp_path, tables.replace("{any}", "true"), behind=behind)
    found = results(load)
    assert load.wrong(given(found)) == ""
    first = next(iter(found))
    assert_matches(
        f"are missing.*or results depend on the order.*{says}", load.wrong(given(found | {first: []}))
    )


def test_behind_key_by_one_partition_has_one_order(tmp_path: Path) -> None:
    assert results(loaded(tmp_path, orders(), behind=BEHIND, first="messages = 9\npartitions = 1"))["sizes"]


@pytest.mark.parametrize(
    ("behind", "says"),
    [
        (TTL, r"stateful 'brief' ends states by the log clock \(ttl=\)"),
        (LOG_TIMER, "stateful 'wait' has a timer of the log clock"),
        (BY_INTAKE, "source 'trades' has no event_time="),
    ],
    ids=["ttl", "timer", "intake"],
)
def test_what_depends_on_a_clock_is_refused_whatever_is_said(behind: str, says: str, tmp_path: Path) -> None:
    tables = TWO if behind is BY_INTAKE else "[load]\nany_order = {any}\n" + orders()
    with pytest.raises(
        SettingsError, match=f"x, load: the expected results cannot be computed: {says}.*in Python"
    ):
        loaded(tmp_path, tables.replace("{any}", "true"), behind=behind)


def test_where_nothing_comes_out_nothing_is_measured(tmp_path: Path) -> None:
    load = loaded(tmp_path, orders(price='{ kind = "constant", value = -1 }'))
    with pytest.raises(LabError, match=r"lead to no results.*1,000 messages are dead letters, .*no price"):
        load.result_bytes()


def test_a_load_in_python_may_return_a_computed_one(tmp_path: Path) -> None:
    app = APPLICATION.replace("{more}", "").replace("{to}", "")
    (tmp_path / "orders_of_the_load.py").write_text(app)
    (tmp_path / "load.py").write_text(
        "import numpy as np\nfrom orders_of_the_load import app\n"
        "from bettong.lab.computed_load import ComputedLoad\nfrom bettong.lab.load import LoadPart\n"
        "def load(messages, seed):\n"
        "    columns = dict(symbol=np.full(messages, 'a'), price=np.ones(messages), size=np.ones(messages, int))\n"
        "    return ComputedLoad(app, [LoadPart('orders', columns | dict(at=TIMES))] * PARTS)\n"
        "import pyarrow as pa\nPARTS = 1\nTIMES = pa.array([0, 1, 2]).cast(pa.timestamp('us', 'UTC'))\n"
    )
    (tmp_path / "run.toml").write_text(
        f'name = "x"\napplication = "{tmp_path}/orders_of_the_load.py"\nload = "{tmp_path}/load.py"\nmessages = 3\n'
    )
    load = load_of(read(tmp_path / "run.toml"))
    assert [part.messages for parts in load.rounds() for part in parts] == [3]
    assert load.result_bytes()["totals"] > 0
    (tmp_path / "load.py").write_text(
        (tmp_path / "load.py").read_text().replace("PARTS = 1", "PARTS = 1 + 1")
    )
    with pytest.raises(SettingsError, match="give each source one part"):
        load_of(read(tmp_path / "run.toml"))
