"""The contract of `TwoPhaseSink` as tests, for your own sinks.

    class TestLedger(TwoPhaseSinkContract):
        @pytest.fixture(autouse=True)
        def destination(self, tmp_path):
            self.path = tmp_path / "ledger"

        def open_sink(self):
            return Ledger(self.path)

        def visible(self, partition):
            return read_ledger(self.path, partition)

A crash is simulated by abandoning a sink (`abandon`) at every point of its life and opening another one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

from bettong.application.external.two_phase import TwoPhaseSink

PARTITION = 0
OTHER = 3

_EVERY_BYTE = bytes(range(256))


class TwoPhaseSinkContract:
    """Derive from it, and define `open_sink` and `visible`. Each test needs a destination that was never used."""

    def open_sink(self) -> TwoPhaseSink:
        """Another sink over the same destination, as the same or another process would open it."""
        raise NotImplementedError

    def visible(self, partition: int) -> list[bytes]:
        """The committed messages of a partition, in order."""
        raise NotImplementedError

    def abandon(self, sink: TwoPhaseSink) -> None:
        """Abandons a sink as if its process were killed; by default, closes it."""
        sink.close()

    def test_a_new_destination_has_no_position_and_no_messages(self) -> None:
        """And recovering twice is no different."""
        for _ in range(2):
            with self._opened() as sink:
                _same(sink.recover(PARTITION), None, "recover of a new destination")
                _same(sink.recover(PARTITION), None, "recover a second time")
        _same(self.visible(PARTITION), [], "visible")

    def test_committed_batches_are_visible_in_order_and_the_last_position_is_found(self) -> None:
        """By the same sink and by the next."""
        with self._opened() as sink:
            sink.recover(PARTITION)
            _deliver(sink, PARTITION, b"1", [b"a", b"b"])
            _same(self.visible(PARTITION), [b"a", b"b"], "visible")
            _deliver(sink, PARTITION, b"2", [b"c"])
        with self._opened() as sink:
            _same(sink.recover(PARTITION), b"2", "recover")
            _deliver(sink, PARTITION, b"3", [b"d"])
            _same(sink.recover(PARTITION), b"3", "recover")
        _same(self.visible(PARTITION), [b"a", b"b", b"c", b"d"], "visible")

    def test_messages_and_positions_are_any_bytes(self) -> None:
        """Empty ones too, and long ones."""
        messages = [b"", _EVERY_BYTE, _EVERY_BYTE * 4000, b"\n", b"\x00"]
        with self._opened() as sink:
            sink.recover(PARTITION)
            _deliver(sink, PARTITION, _EVERY_BYTE * 20, messages)
        with self._opened() as sink:
            _same(sink.recover(PARTITION), _EVERY_BYTE * 20, "recover")
        _same(self.visible(PARTITION), messages, "visible")

    def test_a_batch_without_messages_moves_the_position(self) -> None:
        """And leaves what is visible as it is."""
        with self._opened() as sink:
            sink.recover(PARTITION)
            _deliver(sink, PARTITION, b"1", [b"a"])
            _deliver(sink, PARTITION, b"2", [])
        with self._opened() as sink:
            _same(sink.recover(PARTITION), b"2", "recover")
        _same(self.visible(PARTITION), [b"a"], "visible")

    def test_partitions_are_apart(self) -> None:
        """Their batches may be open at the same time, and each recovers by itself."""
        sink = self.open_sink()
        sink.recover(PARTITION)
        sink.recover(OTHER)
        for partition, message in ((PARTITION, b"a"), (OTHER, b"x")):
            sink.begin(partition)
            sink.write(partition, [message])
        sink.prepare(PARTITION, b"1")
        sink.prepare(OTHER, b"9")
        sink.commit(OTHER, b"9")
        _same((self.visible(PARTITION), self.visible(OTHER)), ([], [b"x"]), "visible after one commit")
        sink.commit(PARTITION, b"1")
        sink.begin(PARTITION)
        sink.write(PARTITION, [b"lost"])
        self.abandon(sink)
        with self._opened() as sink:
            _same(sink.recover(OTHER), b"9", "recover of the other")
            _same(sink.recover(PARTITION), b"1", "recover")
        _same((self.visible(PARTITION), self.visible(OTHER)), ([b"a"], [b"x"]), "visible")

    def test_a_crash_at_any_point_leaves_each_message_once(self) -> None:
        """Three batches, with a crash after every call; each resumes from the position that recover returns."""
        batches = {
            b"%d" % number: [b"%d.%d" % (number, index) for index in range(3)] for number in range(1, 4)
        }
        whole = [message for messages in batches.values() for message in messages]
        steps_of_all = len(_steps(batches, None))
        for survived in range(steps_of_all + 1):
            partition = survived  # a destination that was never used
            sink = self.open_sink()
            for step in _steps(batches, sink.recover(partition))[:survived]:
                step(sink, partition)
            seen = self.visible(partition)
            _true(
                seen in ([], whole[:3], whole[:6], whole), f"{seen} is visible: a batch appears whole or not"
            )
            self.abandon(sink)
            with self._opened() as sink:
                for step in _steps(batches, sink.recover(partition)):
                    step(sink, partition)
                _same(self.visible(partition), whole, f"visible after a crash at step {survived}")
                _same(sink.recover(partition), b"3", f"recover after a crash at step {survived}")

    def test_closing_commits_nothing(self) -> None:
        """And may be done at any time, and twice."""
        self.open_sink().close()
        sink = self.open_sink()
        sink.recover(PARTITION)
        sink.begin(PARTITION)
        sink.write(PARTITION, [b"a"])
        sink.close()
        sink.close()
        _same(self.visible(PARTITION), [], "visible")

    def test_an_older_sink_adds_nothing_once_a_newer_one_has_recovered(self) -> None:
        """A process that was thought dead wakes up: at every point of a batch."""
        for point in range(4):
            partition = point
            old = self.open_sink()
            _same(old.recover(partition), None, "recover")
            for step in _steps({b"1": [b"old"]}, None)[:point]:
                step(old, partition)
            with self._opened() as new:
                position = new.recover(partition)
                before = self.visible(partition)
                _same(before, [b"old"] if position else [], f"visible at position {position!r}")
                # The rest of the old batch may fail, or be done already; a batch after it must fail.
                for step in _steps({b"1": [b"old"]}, None)[point:]:
                    if not _succeeds(step, old, partition):
                        break
                _same(self.visible(partition), before, f"visible after an older sink woke up at step {point}")
                late = _succeeds(_deliver, old, partition, b"2", [b"zombie"])
                _true(
                    not late, "an older sink delivered a batch after a newer one had recovered: it must fail"
                )
                _deliver(new, partition, b"3", [b"new"])
                _same(self.visible(partition), [*before, b"new"], "visible")
                _same(new.recover(partition), b"3", "recover")
            _succeeds(self.abandon, old)

    @contextmanager
    def _opened(self) -> Iterator[TwoPhaseSink]:
        sink = self.open_sink()
        try:
            yield sink
        finally:
            sink.close()


_Step = Callable[[TwoPhaseSink, int], None]
_Arguments = ParamSpec("_Arguments")


def _deliver(sink: TwoPhaseSink, partition: int, position: bytes, messages: list[bytes]) -> None:
    for step in _steps({position: messages}, None):
        step(sink, partition)


def _steps(batches: dict[bytes, list[bytes]], position: bytes | None) -> list[_Step]:
    """The calls for all batches after `position`."""
    steps: list[_Step] = []
    positions = list(batches)
    for each in positions[positions.index(position) + 1 if position in batches else 0 :]:
        steps += [
            lambda sink, partition: sink.begin(partition),
            lambda sink, partition, each=each: sink.write(partition, batches[each]),  # type: ignore[misc]
            lambda sink, partition, each=each: sink.prepare(partition, each),  # type: ignore[misc]
            lambda sink, partition, each=each: sink.commit(partition, each),  # type: ignore[misc]
        ]
    return steps


def _same(found: object, expected: object, what: str) -> None:
    _true(found == expected, f"{what}: {found!r}, expected {expected!r}")


def _true(condition: object, text: str) -> None:
    if not condition:
        raise AssertionError(text)


def _succeeds(
    call: Callable[_Arguments, None], *arguments: _Arguments.args, **named: _Arguments.kwargs
) -> bool:
    """Whether a call does not raise."""
    try:
        call(*arguments, **named)
    except Exception:  # noqa: BLE001 - a sink may raise anything
        return False
    return True
