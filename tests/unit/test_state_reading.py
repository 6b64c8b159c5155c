"""Bytes from an untrusted writer make an error, or plain data: never a call, never more memory than they are long."""

from __future__ import annotations

import random
import sys
import time
import tracemalloc
from collections import defaultdict, deque
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgpack  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.errors import SnapshotError, StateChangedError
from bettong.worker.state import codec as state_codec
from bettong.worker.state.table import SavedStates
from tests.samples.states import Colour, Frozen, Kept, Point, Rights, Slots, fold, read, written

SAMPLES = "tests.samples.states"


def test_a_pickle_of_an_older_version_is_refused_with_the_remedy() -> None:
    import pickle

    with pytest.raises(StateChangedError, match=r"state of 'fold': it is a pickle.*bettong state reset"):
        read(pickle.dumps(["k"]) + pickle.dumps((None, (), [1])))


def test_a_form_of_a_later_version_is_refused_with_the_remedy() -> None:
    with pytest.raises(StateChangedError, match="form 2, and this version of Bettong reads form 1"):
        read(state_codec.MARK + b"\x02" + written(1)[4:])


def packed(table: list[Any], states: list[Any]) -> bytes:
    """A state under one key, as the form has it: a table of classes, and the column."""
    body: bytes = msgpack.packb([table, [0, [0]], states])
    return state_codec.MARK + b"\x01" + body


DATACLASS, NAMED_TUPLE, ENUM = 0, 1, 2


@pytest.mark.parametrize(
    ("kind", "reference", "names"),
    [
        (DATACLASS, "subprocess:Popen", ["args"]),
        (DATACLASS, "builtins:eval", []),
        (DATACLASS, "os:system", []),
        (DATACLASS, "antigravity:anything", []),
        (DATACLASS, f"{SAMPLES}:NoDataclass", []),
        (DATACLASS, f"{SAMPLES}:Kept.__class__", ["total", "held"]),
        (DATACLASS, f"{SAMPLES}:Kept.__init__", ["total", "held"]),
        (DATACLASS, f"{SAMPLES}:Gone", ["total"]),
        (DATACLASS, f"{SAMPLES}:Kept", ["total"]),
        (NAMED_TUPLE, f"{SAMPLES}:Kept", ["total", "held"]),
        (ENUM, f"{SAMPLES}:Kept", []),
        # A dataclass that is loaded, and that the application does not know.
        (
            DATACLASS,
            "bettong.worker.partition:Assignment",
            ["application", "partition", "partitions", "frame_bytes_max"],
        ),
    ],
)
def test_a_class_that_is_not_the_applications_is_never_made(
    kind: int, reference: str, names: list[str]
) -> None:
    columns = [[0, [1]] for _ in names] or [[0, [1]]]
    with pytest.raises(StateChangedError, match="it holds objects of"):
        read(packed([[kind, reference, names]], [2, 0, *columns]))
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("name", ["__class__", "__dict__", "__weakref__", "watched"])
def test_an_attribute_that_runs_code_is_never_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        Kept, "watched", property(lambda _: 0, lambda _, value: seen.append(value)), raising=False
    )
    entry = [0, f"{SAMPLES}:Kept", ["total", "held"], ["total", "held", name]]
    with pytest.raises(SnapshotError, match="are no attributes of"):
        read(packed([entry], [2, 0, [0, [1]], [0, [1]], [0, [1]]]))
    assert not seen


BOMBS: list[Any] = [
    [3, 0, [2**40], [0, []]],
    [18, [0, [2**40]]],
    [20, [0, [2**70 % 2**63]]],
    [33, [0, ["<f8"]], [3, 1, [1], [0, [2**40]]], [0, [b""]]],
    [33, [0, ["O"]], [3, 1, [1], [0, [1]]], [0, [b"\0" * 8]]],
    [33, [0, ["<f8"]], [3, 1, [1], [0, [-1]]], [0, [b"\0" * 8]]],
    [32, [0, ["V0"]], [0, [b""]]],
    [25, [0, ["../../etc/passwd"]]],
    [26, [0, [1.5]]],
    [1, [0, 0, 0], [[0, [1]]]],
    [1, [-1], [[0, [1]]]],
    [0, {"a": 1}],
    [0, [[1]]],
    [5, [[[1]]]],
    [5, {"a": 1}],
    [2, -1, [0, [1]]],
    [99, [0, [1]]],
    [],
    7,
    None,
    [4, 3, [1], [0, ["a"]], [0, [1]], ["exec"]],
    [4, 0, [1], [3, 0, [1], [0, [1]]], [0, [1]]],
]


@pytest.mark.parametrize("column", BOMBS, ids=str)
def test_a_column_that_nobody_has_written_is_an_error(column: Any) -> None:
    with pytest.raises(SnapshotError, match="state of 'fold'"):
        read(packed([], column))


def test_lengths_that_lie_take_no_memory() -> None:
    """An array of 2**27 in an array of 2**27 ...: each header is five bytes."""
    body = b"\xdd\x08\x00\x00\x00" * 500
    nested: Any = [0, [1]]
    for _ in range(150):
        nested = [3, 0, [1], nested]
    tracemalloc.start()
    try:
        for data in (state_codec.MARK + b"\x01" + body, packed([], nested)):
            with pytest.raises(SnapshotError):
                read(data)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def sample() -> bytes:
    return written(
        Kept(1, [Slots(2, "t"), Point(1, Colour.RED), {1, "a"}]),
        Frozen(np.arange(3)),
        {"a": [1.5, None], (1, 2): deque([Decimal(1)], maxlen=3)},
        defaultdict(int, {datetime(2024, 1, 1, tzinfo=UTC): 2**70}),
        [date(2024, 1, 1), timedelta(1), UUID(int=3), Rights.READ | Rights.WRITE, np.float32(1)],
    )


def test_damaged_bytes_are_an_error_or_data_and_take_no_time(seed: int) -> None:
    """A mutation that can still be read is plain data, or objects of the application's own classes."""
    chance, good = random.Random(seed), sample()
    began_s, errors = time.thread_time(), 0  # of the processor, which others use, too
    for _ in range(4000):
        data = bytearray(good)
        for _ in range(chance.randrange(1, 6)):
            offset = chance.randrange(4, len(data))
            how = chance.randrange(4)
            if how == 0:
                data[offset] = chance.randrange(256)
            elif how == 1:
                data[offset:offset] = chance.randbytes(chance.randrange(1, 9))
            elif how == 2:
                del data[offset : offset + chance.randrange(1, 9)]
            else:
                data[offset] = chance.choice(b"\xc6\xdb\xdd\xdf\xc9\xd3\xcf\xc1\x90\x80")
            if len(data) <= 5:
                break
        try:
            fold().load(SavedStates(bytes(data)), log_ns=0, begins=True)
        except SnapshotError:
            errors += 1
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert errors > 1000, f"seed {seed}"
    assert time.thread_time() - began_s < 60, f"seed {seed}"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_an_error(data: bytes) -> None:
    for each in (data, state_codec.MARK + b"\x01" + data):
        with pytest.raises(SnapshotError):
            read(each)
