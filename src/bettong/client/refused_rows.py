"""Finds the rows of a group that cannot be read, and makes frames of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

import pyarrow as pa

from bettong.client.message_input import Body, Group
from bettong.errors import SchemaError

# Called with one line for a row that cannot be read: where it is and why. It may raise to end the reading.
Refuse = Callable[[str], None]


def end_reading(complaint: str) -> None:
    """Refuses the whole file, not only the row: raises SchemaError."""
    raise SchemaError(complaint)


def frame_bodies(group: Group, bytes_max: int, refuse: Refuse) -> Iterator[tuple[int, Body]]:
    """Bodies that fit a frame, in order, each with the number of the group's rows up to its end, with refused ones.

    A row is refused when it cannot be read alone, or is too large alone. Rows are refused in order, but those too large
    after all others of the group.
    """
    readable = list(_readable(group, 0, group.length, refuse))
    if not readable:
        return
    kept = list(chain.from_iterable(range(start, stop) for start, stop, _ in readable))
    yield from _split_to_fit(group, kept, _joined([body for *_, body in readable]), bytes_max, refuse)


def _readable(group: Group, start: int, stop: int, refuse: Refuse) -> Iterator[tuple[int, int, Body]]:
    """Reads rows together; where that fails, each half of them."""
    try:
        body = group.read(start, stop)
    except SchemaError as error:
        if stop - start == 1:
            refuse(f"{group.position(start)}: {error}")
            return
    else:
        yield start, stop, body
        return
    middle = (start + stop) // 2
    yield from _readable(group, start, middle, refuse)
    yield from _readable(group, middle, stop, refuse)


def _joined(bodies: list[Body]) -> Body:
    if len(bodies) == 1:
        return bodies[0]
    if isinstance(bodies[0], list):
        return [message for body in bodies for message in body]
    return pa.concat_batches(bodies)


def _split_to_fit(
    group: Group, kept: list[int], body: Body, bytes_max: int, refuse: Refuse
) -> Iterator[tuple[int, Body]]:
    """Halves a body that is too large for a frame until its parts fit. `kept`: the row of each message."""
    count = len(kept)
    size = (
        sum(map(len, body)) + 8 * count
        if isinstance(body, list)
        else body.nbytes + 512 + 128 * body.num_columns
    )
    if size <= bytes_max:
        yield kept[-1] + 1, body
    elif count == 1:
        refuse(f"{group.position(kept[0])}: {size} bytes, the sender takes {bytes_max}")
    else:
        half = count // 2
        yield from _split_to_fit(group, kept[:half], body[:half], bytes_max, refuse)
        yield from _split_to_fit(group, kept[half:], body[half:], bytes_max, refuse)
