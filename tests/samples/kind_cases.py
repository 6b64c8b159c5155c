"""What a kind of field is tested with."""

from dataclasses import dataclass, field, make_dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from bettong.schema.schema import Schema, schema_of


@dataclass(frozen=True)
class KindCase:
    """`values`: each with its JSON. `unfit`, `no_json`: what is refused, each with words of the reason."""

    annotation: Any
    arrow: pa.DataType
    sql: str
    values: list[tuple[Any, Any]]
    any_value: st.SearchStrategy[Any]
    unfit: list[tuple[Any, str]]
    no_json: list[tuple[Any, str]]
    nullable: bool = False
    # Whether its values can stand in a state: a pydantic model is more than its fields.
    in_states: bool = True
    message: type[Any] = field(init=False)

    def __post_init__(self) -> None:
        made = make_dataclass("Sample", [("key", str), ("value", self.annotation)])
        object.__setattr__(self, "message", made)

    @property
    def schema(self) -> Schema:
        """Of messages with a key and a value of this kind."""
        return schema_of(self.message)

    def messages(self, values: list[Any]) -> list[Any]:
        """One a value."""
        return [self.message(f"k{index % 3}", value) for index, value in enumerate(values)]
