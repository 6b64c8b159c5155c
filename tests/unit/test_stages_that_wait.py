"""A stage behind `key_by` waits for all partitions of the stage before, unless they say that nothing comes any more."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.frames.frame import Frame, FrameKind, decode
from bettong.identifiers import Origin, PartitionId
from bettong.snapshots import snapshot as codec
from bettong.worker.output.downstream_watermarks import BEGIN_NS, TICK_NS
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from tests.samples.event_time import IDLE_NS, STAGE, Visit, control, programs, sender_tick, visits
from tests.samples.worker import fold, frames, tick, worker

FIRST, SECOND = programs()
HOUR_NS = 3600 * IDLE_NS


def to_stage(records: list[OutputRecord]) -> list[bytes]:
    return [each.value for each in records if each.topic == STAGE]


def watermark(of: PartitionWorker) -> int:
    return of.watermark[0]


def due_ns(of: PartitionWorker) -> int | None:
    return of.due_ns


def before(partition: int, *, client: str, at_ns: int) -> tuple[PartitionWorker, list[bytes]]:
    """A partition of the first stage that has folded one visit, and reported how far it is."""
    one = worker(FIRST, partition=partition)
    given_ = fold(one, [visits(client, 1, [Visit(partition, 1, at_ns)], log_ns=1, watermark_ns=at_ns)])
    return one, to_stage(given_ + fold(one, [tick(1 + TICK_NS)]))


def test_a_partition_that_stands_still_holds_the_next_stage_however_long_it_does() -> None:
    stopped, of_stopped = before(0, client="a", at_ns=50)
    going, of_going = before(1, client="b", at_ns=50)
    behind = worker(SECOND, partitions=2)
    fold(behind, of_stopped + of_going)
    for number in range(2, 9):
        log_ns = number * HOUR_NS
        more = visits("b", number, [Visit(1, 1, 50 + number)], log_ns=log_ns, watermark_ns=50 + number)
        fold(behind, to_stage(fold(going, [more, tick(log_ns + TICK_NS)])))
        assert watermark(behind) == 50, "what the other one computes when it goes on is not late"
    goes_on = visits("a", 2, [Visit(0, 1, 58)], log_ns=2, watermark_ns=58)
    fold(behind, to_stage(fold(stopped, [goes_on, tick(2 + 2 * TICK_NS)])))
    assert watermark(behind) == 58


def test_a_partition_whose_clients_are_idle_holds_nobody() -> None:
    quiet, of_quiet = before(0, client="a", at_ns=50)
    going, of_going = before(1, client="b", at_ns=50)
    behind = worker(SECOND, partitions=2)
    fold(behind, of_quiet + of_going)
    assert due_ns(quiet) == 1 + IDLE_NS
    says = to_stage(fold(quiet, [tick(1 + IDLE_NS)]))
    assert [list(decode(each).idle) for each in says] == [["places/visits/0"]]
    assert to_stage(fold(quiet, [tick(1 + IDLE_NS + each * TICK_NS) for each in range(1, 20)])) == []
    assert due_ns(quiet) is None, "it is said once"
    more = [visits("b", 2, [Visit(1, 1, 90)], log_ns=9, watermark_ns=90), tick(9 + 2 * TICK_NS)]
    fold(behind, to_stage(fold(going, more)))
    assert watermark(behind) == 50
    fold(behind, says)
    assert watermark(behind) == 90
    again = [
        visits("a", 2, [Visit(0, 1, 95)], log_ns=9 * IDLE_NS, watermark_ns=95),
        tick(9 * IDLE_NS + TICK_NS),
    ]
    fold(behind, to_stage(fold(quiet, again)))
    fold(behind, says)
    most = visits("b", 3, [Visit(1, 1, HOUR_NS)], log_ns=10, watermark_ns=HOUR_NS)
    fold(behind, to_stage(fold(going, [most, tick(9 + 4 * TICK_NS)])))
    assert watermark(behind) < HOUR_NS, "it is back, whatever is read again"


def test_a_partition_whose_clients_have_ended_does_not_wait_until_they_would_be_idle() -> None:
    one, _ = before(0, client="a", at_ns=50)
    end = control(FrameKind.END, "a", acknowledged=1, log_ns=3 * TICK_NS, watermark_ns=60)
    (said,) = frames(fold(one, [end]), STAGE)
    assert said.idle.keys() == said.watermarks.keys() == {"places/visits/0"}
    assert set(said.watermarks.values()) == {60}


def test_a_stage_that_the_application_has_no_more_holds_nobody() -> None:
    behind = worker(SECOND, partitions=2)
    gone = Origin("places/gone/0")
    stored = codec.decode(behind.snapshot(), application="meters", partition=PartitionId("places", 0))
    stored.event_clock.origins.add(origin=gone, watermark_ns=7, heard_ns=1)
    stored.event_clock.awaited.append(Origin("places/gone/1"))
    behind = worker(SECOND, partitions=2)
    behind.restore(codec.encode(stored))
    one, of_going = before(1, client="b", at_ns=50)
    fold(behind, before(0, client="a", at_ns=60)[1] + of_going)
    assert behind.watermark == (50, "places/visits/1")
    assert one.watermark == (50, "visits/b")


def held(behind: PartitionWorker, by: PartitionWorker) -> bool:
    """Whether the next stage waits for what a partition will send, however far the other one gets."""
    far = visits("b", 2, [Visit(1, 1, HOUR_NS)], log_ns=10, watermark_ns=HOUR_NS)
    fold(behind, to_stage(fold(by, [far, tick(9 + 9 * TICK_NS)])))
    return watermark(behind) < HOUR_NS


def test_a_second_report_that_a_partition_was_idle_changes_nothing_once_it_has_sent_a_frame() -> None:
    quiet, of_quiet = before(0, client="a", at_ns=50)
    going, of_going = before(1, client="b", at_ns=50)
    behind = worker(SECOND, partitions=2)
    says = to_stage(fold(quiet, [tick(1 + IDLE_NS)]))
    fold(behind, of_quiet + of_going + says)
    opens = control(FrameKind.OPEN, "a", acknowledged=1, log_ns=1 + IDLE_NS)
    older = visits("a", 2, [Visit(0, 1, 40)], log_ns=1 + IDLE_NS, watermark_ns=0)
    again = to_stage(fold(quiet, [opens, older]))
    assert {decode(each).watermark_ns for each in again} == set(decode(says[0]).watermarks.values()), (
        "it stays"
    )
    fold(behind, again + says)
    assert held(behind, going)


def test_a_second_report_that_a_partition_was_idle_changes_nothing_once_its_watermark_has_moved() -> None:
    quiet, of_quiet = before(0, client="a", at_ns=50)
    going, of_going = before(1, client="b", at_ns=50)
    behind = worker(SECOND, partitions=2)
    says = to_stage(fold(quiet, [tick(1 + IDLE_NS)]))
    moved = to_stage(fold(quiet, [sender_tick(2 + IDLE_NS + TICK_NS, a=2 * IDLE_NS)]))
    assert [decode(each).kind for each in moved] == [FrameKind.TICK]
    fold(behind, of_quiet + of_going + says + moved + says)
    assert held(behind, going)


def test_a_partition_that_has_never_sent_anything_holds_the_next_stage_until_it_says_that_it_is_idle() -> (
    None
):
    quiet = worker(FIRST)
    _, of_going = before(1, client="b", at_ns=50)
    behind = worker(SECOND, partitions=2)
    fold(behind, of_going)
    assert behind.watermark == (0, "places/visits/0")
    saved = behind.snapshot()
    behind = worker(SECOND, partitions=2)
    behind.restore(saved)
    assert behind.snapshot() == saved
    assert due_ns(quiet) == BEGIN_NS, "nobody has ever written to it: it wants a TICK"
    assert to_stage(fold(quiet, [tick(HOUR_NS)])) == []
    assert due_ns(quiet) == HOUR_NS + BEGIN_NS
    says = to_stage(fold(quiet, [tick(HOUR_NS + BEGIN_NS)]))
    assert [list(decode(each).idle) for each in says] == [["places/visits/0"]]
    assert due_ns(quiet) is None, "it is said once"
    fold(behind, says)
    assert behind.watermark == (50, "places/visits/1")


def test_a_partition_whose_clients_begin_before_it_says_that_it_is_idle_is_waited_for() -> None:
    begins = worker(FIRST)
    _, of_going = before(1, client="b", at_ns=50)
    behind = worker(SECOND, partitions=2)
    fold(behind, of_going)
    reported = to_stage(fold(begins, [tick(HOUR_NS), sender_tick(HOUR_NS + BEGIN_NS, b=40)]))
    assert [decode(each).idle for each in reported] == [{}]
    fold(behind, reported)
    assert behind.watermark == (40, "places/visits/0")


Step = tuple[str, int, int]
# What a partition does at once: rarely would it be drawn in this order.
COMES_BACK = [
    "visit",
    "save",
    "hand over",
    "end",
    "hand over",
    "open",
    "visit",
    "hand over",
    "crash",
    "hand over",
]
ONE = st.sampled_from(["visit", "report", "end", "open", "pass", "crash", "save", "hand over"]).map(
    lambda each: [each]
)
TURNS = st.lists(
    st.tuples(
        st.one_of(ONE, st.just(COMES_BACK), st.just(["visit", "hand over"])),
        st.integers(0, 1),
        st.lists(st.integers(0, 40), min_size=len(COMES_BACK), max_size=len(COMES_BACK)),
    ),
    max_size=12,
)
STEPS = TURNS.map(
    lambda turns: [
        (what, partition, by) for whats, partition, bys in turns for what, by in zip(whats, bys, strict=False)
    ]
)


@dataclass
class Before:
    """A partition of the first stage: its log, a snapshot to go on from, and what it wrote that is not handed over."""

    partition: int
    of: PartitionWorker
    log: list[bytes] = field(default_factory=list)
    saved: tuple[int, bytes] | None = None
    written: list[bytes] = field(default_factory=list)
    sent: int = 0
    at_ns: int = 100

    def do(self, what: str, by: int, log_ns: int) -> None:
        """One record, or one crash."""
        client = f"c{self.partition}"
        if what == "crash":
            self.of = worker(FIRST, partition=self.partition)
            offset, data = self.saved or (0, b"")
            if data:
                self.of.restore(data)
            for value in self.log[offset:]:
                self.written += to_stage(fold(self.of, [value]))
        elif what == "save":
            self.saved = self.of.next_offset, self.of.snapshot()
        elif what in ("visit", "report", "end", "open", "pass"):
            self.at_ns += by
            if what == "visit":
                self.sent += 1
                found = [Visit(self.partition, self.sent % 3, self.at_ns)]
                value = visits(client, self.sent, found, log_ns=log_ns, watermark_ns=self.at_ns)
            elif what == "report":
                value = sender_tick(log_ns, **{client: self.at_ns})
            elif what == "pass":
                value = tick(log_ns)
            else:
                kind = FrameKind.END if what == "end" else FrameKind.OPEN
                value = control(kind, client, acknowledged=self.sent, log_ns=log_ns, watermark_ns=self.at_ns)
            self.log.append(value)
            self.written += to_stage(fold(self.of, [value]))


@given(STEPS)
@settings(max_examples=300)
def test_whatever_is_written_again_the_next_stage_is_never_ahead_of_a_partition_that_may_send(
    steps: list[Step],
) -> None:
    both = [Before(partition, worker(FIRST, partition=partition)) for partition in range(2)]
    behind, log_ns = worker(SECOND, partitions=2), 1
    # By partition, the newest thing that was reported to the next stage: the watermark, and whether it is idle.
    newest: dict[Origin, tuple[int, bool]] = {}
    seen = dict.fromkeys((Origin(f"places/visits/{each.partition}") for each in both), 0)
    order: dict[bytes, int] = {}
    for what, partition, by in steps:
        log_ns += by * TICK_NS // 10
        one = both[partition]
        one.do(what, by, log_ns)
        if what != "hand over":
            continue
        for value in one.written:
            frame = decode(value)
            origin = Origin(f"places/visits/{partition}")
            number = order.setdefault(value, len(order))
            waited_for = {each for each in seen if each not in newest or not newest[each][1]}
            if number >= seen[origin]:
                seen[origin] = number
                newest[origin] = _said(frame, origin)
            before_ns = watermark(behind)
            fold(behind, [value])
            said = [newest.get(each, (0, False)) for each in waited_for]
            held_ns = [watermark_ns for watermark_ns, is_idle in said if not is_idle]
            if watermark(behind) > before_ns and held_ns:
                assert watermark(behind) <= min(held_ns)
        one.written = []


def _said(frame: Frame, origin: Origin) -> tuple[int, bool]:
    if frame.kind is FrameKind.TICK:
        return frame.watermarks[origin], origin in frame.idle
    return frame.watermark_ns, False
