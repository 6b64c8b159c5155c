"""Checks of the streams that a computation reads: keyed, or merged, and the function for the messages of each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from bettong.errors import ApplicationError
from bettong.schema.schema import Schema


class Part(Protocol):
    """What merging reads of a stream."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def schema(self) -> Schema | None:
        """The schema of its messages; None for several."""

    @property
    def keyed(self) -> bool:
        """Whether its messages have a key."""

    @property
    def parts(self) -> Sequence["Part"]:
        """The streams that it merges; none if it is not a merge."""


def check_keyed(owner: str, stream: Part, state: object = dict) -> None:
    """Refuses a stream without a key, and a `state` that cannot be called, for a computation that keeps state by key.

    Raises ApplicationError.
    """
    if not stream.keyed:
        raise ApplicationError(f"{owner}: {stream.name!r} has no key; call key_by first")
    if not callable(state):
        raise ApplicationError(f"{owner}: state={state!r} cannot be called; give a class")


def check_parts(parts: Sequence[Part]) -> None:
    """Refuses streams that cannot be merged with the first one of them. Raises ApplicationError."""
    first = parts[0]
    for part in parts:
        if part.keyed != first.keyed:
            keyless = part.name if first.keyed else first.name
            raise ApplicationError(f"merge of {first.name!r}: {keyless!r} has no key; call key_by first")
    merged = [each for part in parts for each in merged_parts(part, {})]
    for each in merged:
        if merged.count(each) > 1:
            raise ApplicationError(
                f"merge of {first.name!r}: {each.name!r} is given twice, so its messages would be duplicated"
            )


def handlers_by_schema(
    name: str, stream: Part, handlers: Mapping[Any, Callable[..., Any]]
) -> dict[Schema, Callable[..., Any]]:
    """The function for each schema that reaches a stateful computation. `handlers`: by stream; that of a merge of
    several schemas is the function of each of them.
    """
    handlers = _by_part(name, handlers)
    parts = list(merged_parts(stream, handlers))
    missing = [part.name for part in parts if part not in handlers]
    strange = [key.name for key in handlers if key not in parts]
    if missing or strange:
        raise ApplicationError(
            f"stateful {name!r}: needs one function for each of {', '.join(part.name for part in parts)}"
            + (f"; missing: {', '.join(missing)}" if missing else "")
            + (f"; not merged here: {', '.join(strange)}" if strange else "")
        )
    found: dict[Schema, Part] = {}
    for part in parts:
        assert part.schema is not None  # noqa: S101 - only merges mix schemas, and none of them is left
        earlier = found.setdefault(part.schema, part)
        if handlers[part] is not handlers[earlier]:
            raise ApplicationError(
                f"stateful {name!r}: {earlier.name!r} and {part.name!r} have the same schema"
                f" {part.schema.name}; give them one function"
            )
    return {schema: handlers[part] for schema, part in found.items()}


def _by_part(name: str, handlers: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    found: dict[Any, Callable[..., Any]] = {}
    for each, function in handlers.items():
        for part in merged_parts(each, {}) if _mixes_schemas(each) else (each,):
            if found.setdefault(part, function) is not function:
                raise ApplicationError(
                    f"stateful {name!r}: {part.name!r} has two functions, its own and that of a merge; give one"
                )
    return found


def _mixes_schemas(stream: Part) -> bool:
    """Whether it is a merge of several schemas."""
    return bool(stream.parts) and stream.schema is None


def merged_parts(stream: Part, stops: Mapping[Any, object]) -> Iterator[Part]:
    """A stream, or the streams that it merges, down to those in `stops`."""
    if stream.parts and stream not in stops:
        for part in stream.parts:
            yield from merged_parts(part, stops)
    else:
        yield stream
