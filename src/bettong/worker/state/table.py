"""The interface of what holds the states of a computation's keys in one partition."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from bettong.identifiers import PartitionId
from bettong.schema.key_types import KeyValue
from bettong.worker.batch import Batch
from bettong.worker.due import Due
from bettong.worker.fired import DueTimers
from bettong.worker.state.state_schemas import Migration


class SavedStates(NamedTuple):
    """States as bytes; the keys whose states have ended since the last increment; see `last_ns` in snapshot.proto."""

    states: bytes
    ended: bytes = b""
    last_ns: bytes = b""


def scope_of(application: str, partition: PartitionId, offset: int, computation: str) -> bytes:
    """The scope of a computation's states after the records below `offset`: a signature covers it and them."""
    names = (application, partition.stage, partition.partition, offset, computation)
    return "\0".join(map(str, names)).encode()


class StateTable(Protocol):
    """One state for each key, and what has changed since they were last saved.

    Memory is that of the most keys that had a state at once, plus the keys of the last increment that have ended since,
    until the next one names them.
    """

    def open(self, batch: Batch, *, renews: bool = True) -> Any:
        """The states of a batch's rows, as the computation's Calling takes them; they may change from now on.

        With a time to live, these keys are renewed: at the log clock of the last `note_clock`, or by the rows' event
        times. Not with `renews` off, for rows of timers.
        """

    @property
    def due(self) -> Due:
        """When the first timer is due, or some time before: `take_due` makes it exact. Cheap."""

    def take_due(self, log_ns: int, watermark_ns: int) -> Sequence[DueTimers]:
        """The timers that are due, of each key the first one: by time, then by their order in the state.

        They are NEVER from now on. One that is due after the end of its state, by the same clock, is not among them.
        Call this again after their functions were called, until it returns none.
        """

    def note_clock(self, clock_ns: int) -> None:
        """Advances the clock that states live by. They end with `expire`."""

    def expire(self, clock_ns: int) -> int:
        """The same, and ends the states that have outlived their time to live. Returns how many."""

    @property
    def due_ns(self) -> int | None:
        """The time of that clock at which `expire` ends a state next; None when none ends by itself. Cheap."""

    def take_deleted(self) -> int:
        """How many states the Calling has deleted, by `delete_when=`, since the last call of this."""

    def dump(self, scope: bytes = b"") -> SavedStates:
        """The states of all keys; equal states have equal bytes.

        `scope`, here and below, says whose states they are; a signature covers it.
        """

    def split(self, partitions: int, scope: bytes = b"") -> list[SavedStates]:
        """As `dump`, once for each of that many partitions: the states of the keys that belong there."""

    def increment(self, *, begins: bool, scope: bytes = b"") -> SavedStates:
        """The states that changed since the last increment, and some of the others (see `snapshots.chain`).

        `begins`: whether a new round of writing every key again begins with it.
        """

    @property
    def round_complete(self) -> bool:
        """Whether the current round has written every key."""

    def load(
        self,
        data: SavedStates,
        *,
        log_ns: int,
        begins: bool,
        migration: Migration | None = None,
        scope: bytes = b"",
    ) -> None:
        """Restores what `increment` or `dump` returned, in the order of the calls.

        `log_ns`: the clock that states live by, at that moment. What has outlived its time to live since that was
        shortened ends with `expire`.
        `migration`, when given, makes states of this version from the older ones in `data`. Raises
        SnapshotError when it cannot be read; then the table is unusable.
        """

    @property
    def keys(self) -> int:
        """How many keys have a state."""

    def state_of(self, key: KeyValue) -> Any:
        """The state of one key as JSON can hold it (see `to_jsonable`), a copy; None where it has none."""

    def key_values(self) -> list[KeyValue]:
        """Every key. Compiled, a text key is the bytes of its UTF-8."""

    def items(self) -> Iterator[tuple[KeyValue, Any]]:
        """Every key, with its state as `state_of` returns it; keys as of `key_values`."""

    def columns(self, names: Sequence[str]) -> tuple[list[KeyValue], list[list[Any]]]:
        """Every key as `items` returns it, and a list a name: that field of their states, as functions see it.

        Only where the state is a class with these fields. Raises what reading a field raises that an object lacks.
        """
