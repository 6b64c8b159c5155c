"""The table `load` of a run file: for each source, generators or a file. `table_load` makes messages of it.

[[load.sources]]
source = "trades"
share = 3
fields.symbol = { kind = "keys", count = 350, skew = 1.1, prefix = "S" }
fields.price = { kind = "uniform", min = 10.0, max = 20.0 }

[[load.sources]]
source = "quotes"
file = "quotes.parquet"
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    FiniteFloat,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    model_validator,
)

# All of them, and their expected results, are held in memory.
MESSAGES_MAX = 5_000_000
_KEYS_MAX = 10_000_000
_START = datetime(2026, 1, 1, tzinfo=UTC)

# A value in TOML, read as it would be in JSON: `"2.50"` for a Decimal.
Value = StrictBool | StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)] | StrictStr
Weight = Annotated[float, Field(gt=0, le=1e9)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Constant(_Table):
    """One value for all messages."""

    kind: Literal["constant"]
    value: Value


class Choice(_Table):
    """One of `values`, drawn in proportion to `weights`; uniformly without weights."""

    kind: Literal["choice"]
    values: Annotated[list[Value], Field(min_length=1, max_length=100_000)]
    weights: list[Weight] | None = None

    @model_validator(mode="after")
    def _is_weighed(self) -> Self:
        if self.weights is not None and len(self.weights) != len(self.values):
            raise ValueError(f"{len(self.weights)} weights for {len(self.values)} values: give each one")
        return self


class UniformNumber(_Table):
    """A number from `min` to `max`, uniformly drawn: if both are whole, a whole number, `max` included."""

    kind: Literal["uniform"]
    min: StrictInt | FiniteFloat
    max: StrictInt | FiniteFloat

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        return self


class Keys(_Table):
    """One of `count` keys: a whole number from 0 on; for a text field, `prefix` and that number.

    `skew`: the exponent of Zipf's law, by which key n comes in proportion to 1 / (n + 1) ** skew; 0: uniformly.
    """

    kind: Literal["keys"]
    count: Annotated[int, Field(ge=1, le=_KEYS_MAX)]
    skew: Annotated[float, Field(ge=0, le=10)] = 0.0
    prefix: Annotated[str, Field(max_length=100)] = ""


class Counter(_Table):
    """Consecutive whole numbers from `start` on."""

    kind: Literal["counter"]
    start: int = 0


class Time(_Table):
    """Times from `start` on, in equal steps over `span_s` in all: Unix ns, or datetimes."""

    kind: Literal["time"]
    start: AwareDatetime = _START
    span_s: Annotated[float, Field(gt=0, le=366 * 86_400)]


_KINDS = ("constant", "choice", "uniform", "keys", "counter", "time")
# Tags of unions, which pydantic puts into the locations of errors; no message field has such a name.
TAGS = frozenset({*(f"<{kind}>" for kind in _KINDS), "<path>", "<table>"})


def _kind_of(given: Any) -> str | None:
    kind = given.get("kind") if isinstance(given, dict) else getattr(given, "kind", None)
    return f"<{kind}>" if isinstance(kind, str) and kind in _KINDS else None


Generator = Annotated[
    Annotated[Constant, Tag("<constant>")]
    | Annotated[Choice, Tag("<choice>")]
    | Annotated[UniformNumber, Tag("<uniform>")]
    | Annotated[Keys, Tag("<keys>")]
    | Annotated[Counter, Tag("<counter>")]
    | Annotated[Time, Tag("<time>")],
    Discriminator(
        _kind_of,
        custom_error_type="generator",
        custom_error_message=f"expected a table whose kind is one of {', '.join(_KINDS)}",
    ),
]


class SourceTable(_Table):
    """The messages of one source.

    `share`: of all messages, in proportion to the shares of other sources. `file`: its rows are replayed in order, from
    the beginning again when there are too few. `fields`: generators, for all fields or for those that the file lacks.
    `disorder_ms`: by up to how much event time each message comes late.
    """

    source: Annotated[str, Field(min_length=1)]
    share: Weight = 1.0
    file: str | None = None
    fields: dict[str, Generator] = {}
    disorder_ms: Annotated[float, Field(ge=0, le=86_400_000)] = 0.0

    @model_validator(mode="after")
    def _has_messages(self) -> Self:
        if self.file is None and not self.fields:
            raise ValueError("needs a file that is replayed, or fields with their generators")
        return self


class LoadTable(_Table):
    """All sources that get messages.

    `any_order`: results depend neither on the order in which messages of different sources (or, behind key_by, of
    different keys) are processed, nor on how messages are grouped into frames.
    """

    sources: Annotated[list[SourceTable], Field(min_length=1, max_length=100)]
    any_order: bool = False

    @model_validator(mode="after")
    def _names_each_source_once(self) -> Self:
        names = [each.source for each in self.sources]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"source {min(twice)!r} has two tables: give it one")
        return self


def load_kind(given: Any) -> str:
    """The tag of `load` in a run file: that of a table, or of the path of a Python file."""
    return "<table>" if isinstance(given, dict | LoadTable) else "<path>"
