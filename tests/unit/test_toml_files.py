"""Faults of a TOML file: each names table, field and remedy."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from bettong.config.toml_files import checked
from bettong.errors import SettingsError


class Wheel(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["wheel"] = "wheel"
    inches: Annotated[int, Field(ge=1)] = 20


class Engine(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["engine"]
    litres: float = 1.0


class Car(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = ""
    parts: list[Annotated[Wheel | Engine, Field(discriminator="kind")]] = []
    spare: Wheel | None = None

    @model_validator(mode="after")
    def _has_a_spare(self) -> Car:
        if self.parts and self.spare is None:
            raise ValueError("parts need a spare")
        return self


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"nam": "x"}, "nam: there is no such field; is name meant?"),
        ({"zzz": 1}, "zzz: there is no such field, expected one of name, parts, spare"),
        ({"spare": {"inch": 1}}, "spare.inch: there is no such field; is inches meant?"),
        (
            {"parts": [{"kind": "engine", "liters": 1}]},
            "parts[0].liters: there is no such field; is litres meant?",
        ),
        ({"parts": [{"kind": "door"}]}, "parts[0]: kind 'door': expected one of 'wheel', 'engine'"),
        ({"parts": [{"inches": 3}]}, "parts[0]: its kind is missing"),
        ({"parts": {"kind": "wheel"}}, "parts: expected a list of tables: write [[parts]]"),
        ({"spare": {"inches": 0}}, "spare.inches: Input should be greater than or equal to 1 (got 0)"),
        ({"name": 5}, "name: Input should be a valid string (got 5)"),
        ({"parts": [{"kind": "wheel"}]}, "car.toml, 1 fault(s): parts need a spare"),
    ],
)
def test_a_fault_of_a_file_names_table_field_and_remedy(content: dict[str, object], says: str) -> None:
    with pytest.raises(SettingsError) as raised:
        checked(Car, content, "car.toml", tags={"wheel", "engine"})
    assert says in str(raised.value)


def test_a_field_that_is_missing_is_said_to_be() -> None:
    with pytest.raises(SettingsError) as raised:
        checked(Engine, {}, "engine.toml")
    assert str(raised.value) == "engine.toml, 1 fault(s): kind: missing"
