"""What needs a person becomes an event when it lasts, and another one when it is over; what swings is one alert."""

from __future__ import annotations

from bettong.inspection.alerts import ALERTS_MAX, Alerts, alerts
from bettong.inspection.overall_state import Level, Need
from bettong_console.board import Board
from tests.console.recordings import recorded, saved

LAG = Need(Level.NOTICE, "lag s", "stage s is 12 s behind its log", "add cores to the processor")


def reported(*looks: tuple[float, list[Need]]) -> list[tuple[float, str, str]]:
    standing: Alerts = {}
    found = []
    for at_s, needed in looks:
        standing, changes = alerts(standing, needed, at_s)
        found += [(each.at_s, each.what, each.text) for each in changes]
    return found


def test_what_lasts_begins_once_with_its_remedy_and_is_over_when_it_stays_away() -> None:
    later = Need(Level.NOTICE, LAG.about, "stage s is 99 s behind its log", LAG.remedy)
    assert reported(
        (0, [LAG]), (1, [LAG]), (2, [LAG]), (3, [later]), (5, []), (14, []), (15, []), (30, [])
    ) == [
        (2, "alert", "stage s is 12 s behind its log; add cores to the processor"),
        (14, "alert over", "stage s is 12 s behind its log (it lasted 3 s)"),
    ]


def test_what_has_become_worse_before_it_is_reported_is_reported_as_it_is_then() -> None:
    """A service that dies is not heard of at first, which needs nobody yet."""
    unheard = Need(Level.NOTICE, "service s", "s: no report for 1.5 s", "wait a moment")
    silent = Need(Level.BAD, "service s", "s: silent", "see whether its process is alive")
    assert reported((0, [unheard]), (1, [silent]), (2, [silent]), (3, [unheard]), (13, [])) == [
        (2, "alert", "s: silent; see whether its process is alive"),
        (13, "alert over", "s: silent (it lasted 3 s)"),
    ]


def test_what_is_there_for_a_moment_is_no_alert_and_what_swings_is_one() -> None:
    assert reported((0, [LAG]), (1, []), (2, [LAG]), (3, [])) == []
    swings = [(float(second), [LAG] if second % 9 < 3 else []) for second in range(40)]
    assert [what for _, what, _ in reported(*swings)] == ["alert"]


def test_alerts_are_bounded_and_of_one_trouble_the_worst_counts() -> None:
    worse = Need(Level.BAD, LAG.about, "worse", "see it")
    assert reported((0, [worse, LAG]), (2, [worse, LAG])) == [(2, "alert", "worse; see it")]
    many = [Need(Level.BAD, str(number), "x", "y") for number in range(2 * ALERTS_MAX)]
    assert len(reported((0, many), (2, many))) == ALERTS_MAX


def test_a_board_tells_of_alerts_among_what_has_happened() -> None:
    board = Board("visits")
    for look in map(saved, recorded("visits")):
        board.add(look.time_s, look.time_s, look.answers)
    found = [each for each in board.changes if each.what == "alert"]
    assert ["is not saved: the <b>bucket</b> does not answer" in each.text for each in found].count(True) == 1
