"""`examples/trades_and_quotes.py`: each trade with the quote of its time, whichever of the two comes first."""

from __future__ import annotations

from bettong.application.plan import plan
from bettong.frames.frame import tick_record
from bettong.identifiers import Origin
from bettong.testing import END, IDLE, AppSession
from bettong.worker.stage_program import program
from examples.trades_and_quotes import Cost, Quote, Trade, app
from tests.samples.example_files import ExampleFiles
from tests.samples.worker import data, fold, opening, results, worker

MS = 10**6


def test_each_trade_meets_the_quote_that_was_valid_when_it_happened() -> None:
    (stage,) = plan(app).stages
    one = worker(program(stage, compiled=False))
    trades = [
        Trade("ACME", 100.25, 10, 1250 * MS),
        Trade("ACME", 101.0, 5, 1500 * MS),
        Trade("ACME", 99.0, 1, 3000 * MS),
        Trade("OTHER", 7.0, 1, 1300 * MS),
    ]
    quotes = [
        Quote("ACME", 99.5, 100.5, 1000 * MS),
        Quote("ACME", 100.5, 102.5, 1500 * MS),
        Quote("ACME", 1.0, 2.0, 1501 * MS),
    ]
    log = [
        *(opening("trades/feed", 0), opening("quotes/feed", 0)),
        data("trades/feed", 1, trades, watermark_ns=2800 * MS),
        data("quotes/feed", 1, quotes, watermark_ns=1301 * MS),
    ]
    # The quotes have come to 1301 ms, and what happened after that waits for them.
    found = fold(one, log)
    assert results(found, "meters.sink.costs", Cost) == [
        Cost("ACME", 100.25, 0.25, 250),
        Cost("OTHER", 7.0, 0.0, -1),
    ]
    ends = {Origin("trades/feed"): 9000 * MS, Origin("quotes/feed"): 9000 * MS}
    found = fold(one, [tick_record("log", 1, ends)])
    assert results(found, "meters.sink.costs", Cost) == [
        Cost("ACME", 101.0, -0.5, 0),
        Cost("ACME", 99.0, 0.0, -1),
    ]
    assert one.keys == 0


def test_of_two_files_sent_one_after_the_other_the_second_is_late() -> None:
    """So the page says to send them at the same time."""
    files = ExampleFiles("trades_and_quotes")
    (_, quotes), (_, trades) = files.inputs()
    one_after_the_other, together = AppSession(files.app), AppSession(files.app)
    for step in (("quotes", quotes), IDLE, ("trades", trades)):
        one_after_the_other.step(step)
    together.step(("quotes", quotes), ("trades", trades))
    assert one_after_the_other.finish(END).late > 0
    assert together.finish(END).late == 0
