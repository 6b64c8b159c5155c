"""What `python -m benchmarks.peers` decides without running anybody: the load, the check, versions, last words."""

from __future__ import annotations

import pytest

from benchmarks.peers.bettong.contestant import HERE as BETTONG
from benchmarks.peers.frame_rows import symbols_and_rows
from benchmarks.peers.load import INPUT, Record
from benchmarks.peers.market import NEW, Market, step, step_row
from benchmarks.peers.market_load import market_frames, market_load
from benchmarks.peers.race import RaceError, check
from benchmarks.peers.roster import PEERS, last_line, pinned
from benchmarks.peers.workloads import MARKET_SPREAD
from bettong.edges.application_file import load as load_application
from bettong.testing import run
from examples.market_spread_oracle import RESULT, by_symbol

SYMBOLS = 350
FRAME_MESSAGES = 700


def folded(records: list[Record]) -> bytes:
    """What a peer makes of records, message by message."""
    markets: dict[bytes, Market] = {}
    results = bytearray()
    for record in records:
        markets[record.key], result = step(record.value, markets.get(record.key, NEW))
        results += result or b""
    return bytes(results)


def folded_frames(records: list[Record]) -> bytes:
    """What a peer makes of frames."""
    markets: dict[bytes, Market] = {}
    results = bytearray()
    for record in records:
        for symbol, row in symbols_and_rows(record.value):
            markets[symbol], result = step_row(row, markets.get(symbol, NEW))
            results += result or b""
    return bytes(results)


def test_the_rule_of_the_peers_gives_the_oracles_answer() -> None:
    of = market_load(300_000)  # three rounds, so that rejecting symbols are quoted before they are ordered
    check(by_symbol(folded(of.opening + of.timed)), of.expected)
    assert sum(map(len, of.expected.values())) > 2 * SYMBOLS + 1000, "the bells, and some between"
    frames = market_frames(300_000, 4)
    check(by_symbol(folded_frames(frames.opening + frames.timed)), of.expected)
    assert len(folded_frames(frames.opening)) == of.opening_results * RESULT.size
    assert len({record.partition for record in frames.timed}) == 4


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
def test_bettongs_application_gives_the_oracles_answer(*, compiled: bool) -> None:
    of = market_load(20_000)
    app = load_application(str(BETTONG / f"{MARKET_SPREAD.module}.py"))
    messages = [record.value for record in of.opening + of.timed]
    frames = range(0, len(messages), FRAME_MESSAGES)
    inputs = [(INPUT, messages[start : start + FRAME_MESSAGES]) for start in frames]
    outcome = run(app, inputs, compiled=compiled)
    check(by_symbol(b"".join(outcome.outputs["rejected"])), of.expected)
    assert not outcome.dead_letters


def test_a_bell_rings_for_each_symbol_before_the_clock_starts_and_at_the_end() -> None:
    of = market_load(10_000)
    opening = folded(of.opening)
    assert len(opening) == of.opening_results * RESULT.size
    assert len(by_symbol(opening)) == SYMBOLS
    assert {record.key for record in of.timed[-SYMBOLS:]} == by_symbol(opening).keys()
    assert all(results[-1][9:15] == b"BELL 2" for results in of.expected.values())


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({b"A": [b"1"]}, "1 results of 'A' for 2, not the right ones"),
        ({b"A": [b"1", b"2", b"2"]}, "3 results of 'A' for 2, not the right ones"),
        ({b"A": [b"2", b"1"]}, "2 results of 'A' for 2, in another order"),
        ({b"A": [b"1", b"2"], b"B": [b"1"]}, "1 results of 'B' for 0, not the right ones"),
    ],
)
def test_a_lost_doubled_moved_or_strange_result_is_named(found: dict[bytes, list[bytes]], said: str) -> None:
    with pytest.raises(RaceError, match=said):
        check(found, {b"A": [b"1", b"2"]})


def test_a_version_is_read_from_the_lock() -> None:
    lock = "a-faust==9 \\\nfaust==0.15.3 \\\n    --hash=sha256:00\nfaust-extra==1 ; python_version < '4' \\\n"
    assert (pinned("faust", lock), pinned("faust-extra", lock)) == ("0.15.3", "1")
    with pytest.raises(LookupError, match="make lock"):
        pinned("absent", lock)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_peer_has_a_version(peer: object) -> None:
    assert peer.version[0].isdigit()  # type: ignore[attr-defined]


def test_last_words_are_words() -> None:
    assert (
        last_line(["Traceback", "\x1b[31mOSError: in use\x1b[0m", "\x1b[?25h", "-----"]) == "OSError: in use"
    )
    assert last_line([]) == "nothing"
