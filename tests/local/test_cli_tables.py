"""What `bettong status` and `bettong run` make of live metrics."""

import io
import re

from rich.console import Console

from bettong.cli.exit_codes import MEANINGS
from bettong.cli.latency_tables import latency_table
from bettong.cli.status import partitions_table, services_table, show, stages_table
from bettong.cli.status_texts import duration, line, stuck, summary
from bettong.errors import BettongError
from bettong.hot_keys import HotKey, HotKeys
from bettong.identifiers import PartitionId
from bettong.inspection.deployment import DeploymentAnswers, Logs, inspection
from bettong.inspection.overview import StageSummary, overview, partition_rows, stages, stands_still
from bettong.inspection.services import ProcessFacts, local_rows, remote_rows
from bettong.latency_parts import PartsOfLate

NOW_NS = 1_800_000_000_000_000_000
LIVE = {
    "sender": {
        "service": "sender",
        "state": "running",
        "since": "100",
        "messages": "1500",
        "dead_letters": "1",
        "dead_letter_last": "orders: UnicodeDecodeError (orders/feed, frame 2, message 0)",
    },
    "processor": {
        "service": "processor",
        "state": "waiting",
        "since": "150",
        "detail": "waiting for Kafka [/at 127.0.0.1:9092]",
        "lag": "3",
    },
    "receiver": {
        "service": "receiver",
        "state": "running",
        "since": "100",
        "messages": "40",
        "gaps": "0",
        "lag": "2",
        "latency_p50_ms": "12.5",
        "latency_p99_ms": "250.0",
        "dead_letters": "7",
        "dead_letter_last": "check: ValueError: no price (orders/feed, frame 7, message 3)",
    },
}
PARTITIONS = {
    PartitionId("nbbo", 0): {
        "offset": "10",
        "snapshot_offset": "8",
        "messages": "900",
        "results": "25",
        "duplicates": "2",
        "skipped": "2",
    },
    PartitionId("nbbo", 1): {
        "offset": "9",
        "messages": "600",
        "results": "15",
        "dead_letters": "4",
        "gaps": "1",
    },
}


def facts(
    *,
    runs: bool = True,
    restarts: int = 0,
    started_s: float = 90.0,
    fault: str = "",
    final_status: int | None = None,
) -> ProcessFacts:
    return ProcessFacts(
        pid=42,
        started_s=started_s,
        restarts=restarts,
        runs=runs,
        log="logs/x.log",
        fault=fault,
        final_status=final_status,
    )


def printed(table: object) -> str:
    text = io.StringIO()
    Console(width=200, file=text).print(table)
    return text.getvalue()


def test_the_overview_adds_up_instances_and_partitions() -> None:
    found = overview(LIVE, PARTITIONS)
    assert (found.messages, found.results, found.dead_letters, found.lag) == (1500, 40, 7, 5)
    assert (found.p50_ms, found.p99_ms) == (12.5, 250.0)
    assert "no price" in found.dead_letter_last


def test_an_empty_deployment_has_an_overview_too() -> None:
    found = overview({}, {})
    assert (found.messages, found.lag, found.p50_ms) == (0, None, None), "nobody says that there is no lag"


def test_a_line_of_counts_has_the_rate_since_the_line_before() -> None:
    before, now = overview({}, {}), overview(LIVE, PARTITIONS)
    assert line(now, before, 0.5) == (
        "1,500 in  3,000/s  40 out  7 dead letters  lag 5  p50 12 ms  p99 250 ms"
    )
    assert "  0/s  " in line(before, now, 1.0), "a sender that starts again counts from 0"


def test_stages_are_summed_over_their_partitions() -> None:
    expected = StageSummary(
        stage="nbbo",
        partitions=2,
        offset=19,
        snapshot_offset=8,
        messages=1500,
        results=40,
        dead_letters=4,
        skipped=2,
        skipped_frames=3,
    )
    assert stages(partition_rows({}, PARTITIONS)) == [expected]
    assert "1,500" in printed(stages_table([expected]))


def test_each_partition_has_a_row_with_what_its_schedule_measures() -> None:
    measured = {"lag": "3", "messages_per_s": "1250.0", "latency_p50_ms": "1.5", "latency_p99_ms": "12.25"}
    rows = partition_rows(LIVE, {**PARTITIONS, PartitionId("nbbo", 10): {"offset": "7", **measured}})
    assert [row.partition for row in rows] == [0, 1, 10]
    text = printed(partitions_table(rows, NOW_NS)).splitlines()
    assert text[1].split() == ["nbbo/0", "10", "8", "900"]
    assert text[3].split() == ["nbbo/10", "7", "3", "0", "1,250", "1.5", "12.2"]


def test_partitions_that_go_by_event_time_say_how_far_it_has_come_and_who_holds_it() -> None:
    held = {"offset": "7", "watermark_ns": str(NOW_NS - 90 * 10**9), "watermark_held_by": "places/visits/3"}
    unknown = {"offset": "7", "watermark_ns": "0", "watermark_held_by": "visits/[a]"}
    rows = partition_rows(LIVE, {PartitionId("places", 0): held, PartitionId("visits", 0): unknown})
    text = printed(partitions_table(rows, NOW_NS)).splitlines()
    assert text[0].split()[-3:] == ["watermark", "held", "by"]
    assert text[1].endswith("-2 min  places/visits/3")
    assert text[2].rstrip().endswith("unknown  visits/[a]")


def test_partitions_name_the_key_that_has_most_of_their_messages() -> None:
    hot = HotKeys(5000, (HotKey("[a]" + "x" * 40, 0.42, 0.4), HotKey("b", 0.1, 0.1))).to_text()
    rows = partition_rows(
        LIVE, {PartitionId("a", 0): {"hot_keys": hot}, PartitionId("b", 0): {"offset": "7"}}
    )
    text = printed(partitions_table(rows, NOW_NS)).splitlines()
    assert text[0].split()[-2:] == ["hot", "key"]
    assert text[1].rstrip().endswith("42% [a]" + "x" * 21)
    assert text[2].split() == ["b/0", "7", "0"]


def test_a_skew_is_in_the_summary_with_what_to_do() -> None:
    hot = HotKeys(5000, (HotKey("[a]", 1.0, 1.0),)).to_text()
    partitions = {PartitionId("s", number): {"messages": "40000"} for number in range(4)}
    partitions[PartitionId("s", 1)] = {"messages": "900000", "hot_keys": hot}
    rows = partition_rows(LIVE, partitions)
    (text,) = [line for line in summary(overview(LIVE, partitions, rows)) if "skew" in line]
    assert text.startswith("[yellow]skew[/yellow]: s/1: key '\\[a]' has 88% of the messages")
    assert "`local`" in text


def test_the_driver_knows_the_lag_of_a_partition_that_nobody_folds() -> None:
    live = {"p": {"service": "processor", "lag": "12", "lag/nbbo/0": "12"}}
    assert [
        row.lag for row in partition_rows(live, {PartitionId("nbbo", 0): {"offset": "1", "lag": "3"}})
    ] == [12]


def test_lag_is_computed_from_where_logs_end_and_not_at_all_where_nobody_knows() -> None:
    partitions = {PartitionId("nbbo", 0): {"offset": "10"}}
    begins, ends = (
        {PartitionId("nbbo", 0): 0, PartitionId("nbbo", 1): 4},
        {PartitionId("nbbo", 0): 10, PartitionId("nbbo", 1): 9},
    )
    dead = {"receiver": LIVE["receiver"]}
    rows = partition_rows(dead, partitions, begins=begins, ends=ends)
    assert [(row.partition, row.offset, row.lag) for row in rows] == [(0, 10, 0), (1, 4, 5)]
    assert overview(dead, partitions, rows).lag == 5 + 2
    assert [stands_still(row) for row in rows] == [False, True], "nobody folds"
    (text,) = stuck(rows)
    assert text.startswith(
        "[red]nbbo/1 stands still at offset 4, no worker folds it: 5 records wait[/red]; start"
    )
    assert overview(dead, partitions).lag is None, "no processor says it"
    away = partition_rows(LIVE, partitions, lag_known=False)
    assert ([row.lag for row in away], overview(LIVE, partitions, away).lag) == ([None], None)
    without_receiver = {"processor": LIVE["processor"]}
    assert overview(without_receiver, {}, []).lag is None, "what was not delivered is not known"
    assert overview(dead, {}, []).lag is None, "of no partition anything is known"
    assert summary(overview({}, {}))[0].startswith("lag unknown, ")


def test_a_partition_stands_still_once_its_driver_has_said_so_for_a_while() -> None:
    def reported(seconds: str) -> dict[str, dict[str, str]]:
        return {"p": {"service": "processor", "lag": "3", "lag/nbbo/0": "3", "stalled_s/nbbo/0": seconds}}

    (soon,), (late,) = (
        partition_rows(reported(each), {PartitionId("nbbo", 0): {"offset": "7"}}) for each in ("3.5", "12.0")
    )
    assert stuck([soon]) == []
    assert stuck([late]) == [
        "[red]nbbo/0 stands still at offset 7 for 12 s: 3 records wait[/red]; see the processor's log"
    ]
    assert "12 s" in printed(partitions_table([late], NOW_NS))


def test_who_has_not_written_its_record_for_three_seconds_says_nothing() -> None:
    record = {**LIVE["sender"], "ttl_s": "10.0", "age_s": "2.9"}
    assert remote_rows({"sender": record})[0].state == "running"
    (row, *_) = remote_rows({"sender": {**record, "age_s": "3.4"}})
    assert row.state == "silent"
    assert row.detail.startswith("has reported nothing for 3 s")
    assert row.detail.endswith("its last report: running")


def test_a_process_that_ended_says_how_and_so_does_the_one_after_it() -> None:
    processes = {
        "processor": facts(runs=False, fault="exit code 9: no state reaches offset 7", final_status=9),
        "receiver": facts(started_s=120.0, fault="exit code 5: topic a has 2 partitions"),
        "sender": facts(),
        "kafka": facts(),
    }
    rows = local_rows({}, processes, {"kafka": "Kafka at x does not answer", "redis": "Redis is away"})
    found = {row.name: (row.state, row.detail) for row in rows}
    assert found["processor"] == (
        "given up",
        "stopped for good: exit code 9: no state reaches offset 7; see logs/x.log; fix it, then bettong down and up",
    )
    assert found["kafka"] == ("silent", "Kafka at x does not answer")
    assert found["sender"][0] == "unknown"
    (again,) = local_rows({}, {"receiver": processes["receiver"]})
    assert (again.state, again.detail) == (
        "starting",
        "again, after it died: exit code 5: topic a has 2 partitions; see logs/x.log",
    )


def test_dead_letters_are_those_of_the_receiver_which_reads_each_once() -> None:
    """A sender counts since it started, and again what is resent; names say nothing about who was last."""
    senders = {"zz": LIVE["sender"], "aa": {**LIVE["sender"], "dead_letters": "90"}}
    found = overview({**senders, "mm": LIVE["receiver"]}, PARTITIONS)
    assert found.dead_letters == 7
    assert "no price" in found.dead_letter_last


def test_without_a_receiver_dead_letters_are_those_of_partitions_which_count_those_of_senders_too() -> None:
    found = overview({"sender-1": LIVE["sender"]}, PARTITIONS)
    assert found.dead_letters == 4
    assert "UnicodeDecodeError" in found.dead_letter_last


def test_a_receiver_that_has_not_seen_the_last_one_leaves_it_to_the_sender() -> None:
    found = overview({**LIVE, "receiver": {**LIVE["receiver"], "dead_letter_last": ""}}, PARTITIONS)
    assert found.dead_letters == 7
    assert "UnicodeDecodeError" in found.dead_letter_last


def test_an_instance_says_which_service_it_is_whatever_its_name() -> None:
    assert [row.name for row in remote_rows({"sender": LIVE["receiver"]}) if row.state == "down"] == [
        "sender",
        "processor",
    ]


def test_what_a_process_says_counts_only_while_it_runs() -> None:
    live = {
        **LIVE,
        "processor": {**LIVE["processor"], "pid": "42"},
        "receiver": {**LIVE["receiver"], "pid": "41"},  # of the process before
    }
    rows = local_rows(
        live,
        {
            "kafka": facts(),
            "sender": facts(runs=False),
            "processor": facts(restarts=2, started_s=290.0),  # then the machine's clock was set back
            "receiver": facts(),
        },
    )
    assert [(row.name, row.state, row.detail) for row in rows] == [
        ("kafka", "running", ""),
        ("processor", "waiting", "waiting for Kafka [/at 127.0.0.1:9092]"),
        ("receiver", "starting", ""),
        ("sender", "down", "see logs/x.log"),
    ]
    text = printed(services_table(rows, now_s=300.0))
    assert "2 min" in text
    assert "[/at 127.0.0.1:9092]" in text
    assert "42" in text


def test_elsewhere_each_service_is_expected_at_least_once() -> None:
    rows = remote_rows({"sender-1": LIVE["sender"], "sender-2": LIVE["sender"]})
    assert [(row.name, row.state) for row in rows] == [
        ("sender-1", "running"),
        ("sender-2", "running"),
        ("processor", "down"),
        ("receiver", "down"),
    ]


def test_nothing_is_said_of_any_service_or_message_while_redis_which_knows_is_away() -> None:
    silent = {"redis": "Redis at x does not answer"}
    rows = remote_rows({}, silent)
    assert {row.state for row in rows} == {"unknown"}
    logs = Logs({PartitionId("nbbo", 0): 0}, {PartitionId("nbbo", 0): 7})
    text = io.StringIO()
    found = inspection("app", rows, DeploymentAnswers(logs=logs, silent=silent))
    show(found, Console(width=200, file=text), each=True)
    assert "Redis at x does not answer; its data is left out" in text.getvalue()
    assert not re.search("messages|stands still|dead letters|lag", text.getvalue())


def test_the_summary_says_how_many_dead_letters_and_why() -> None:
    assert summary(overview(LIVE, PARTITIONS))[-2] == (
        "[red]7 dead letters[/red], the last: check: ValueError: no price (orders/feed, frame 7, message 3)"
    )
    assert summary(overview({}, {}))[-1] == "no dead letters"


def receiving(*sinks: str) -> dict[str, dict[str, str]]:
    """What a receiver says of a latency of 2.5 ms in the mean."""
    parts = PartsOfLate(1000, [0.3, 1.25, 0.1, 0.8, 0.05], [1.1, 5.25, 0.4, 3.1, 0.2]).to_text()
    return {**LIVE, "receiver": {**LIVE["receiver"], **{f"latency_parts/{sink}": parts for sink in sinks}}}


def test_the_summary_names_the_part_in_which_results_of_a_sink_spend_most_of_their_time() -> None:
    lines = summary(overview(receiving("out[x]"), PARTITIONS))
    assert lines[2] == (
        "latency of out\\[x]: mean 2.5 ms, 50% of it log to worker (p99 5.2 ms), of the last 60 s"
    )
    many = summary(overview(receiving(*"abcdefg"), PARTITIONS))
    assert [text for text in many if text.startswith("latency of ")][4:] == [
        "latency of 3 more sinks: --latency"
    ]


def test_the_parts_of_each_sinks_latency_stand_above_their_sum() -> None:
    text = io.StringIO()
    console = Console(file=text, width=80)
    console.print(latency_table(overview(receiving("out"), PARTITIONS).latency_parts))
    assert [line.split() for line in text.getvalue().splitlines()] == [
        ["latency", "of", "part", "mean", "ms", "share", "p99", "ms"],
        ["out", "client", "to", "log", "0.30", "12%", "1.10"],
        ["out", "log", "to", "worker", "1.25", "50%", "5.25"],
        ["out", "inside", "worker", "0.10", "4%", "0.40"],
        ["out", "log", "to", "receiver", "0.80", "32%", "3.10"],
        ["out", "receiver", "to", "sink", "0.05", "2%", "0.20"],
        ["out", "together", "2.50", "100%"],
    ]


def test_the_summary_says_what_was_skipped() -> None:
    sender = {"sender": {"state": "running", "service": "sender", "skipped": "3"}}
    assert "[yellow]5 messages skipped[/yellow]" in summary(overview(sender, PARTITIONS))[-1]


def test_durations_take_the_largest_unit() -> None:
    assert [duration(seconds) for seconds in (-1, 5, 90, 7200, 200_000)] == [
        "0 s",
        "5 s",
        "2 min",
        "2 h",
        "2 d",
    ]


def test_every_exit_code_of_an_error_has_a_meaning() -> None:
    kinds = [BettongError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    assert {kind.exit_code for kind in kinds} <= set(MEANINGS)
