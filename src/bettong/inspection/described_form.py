"""What a form for scripts is made of: fields, each with its unit and what it says. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


def unit_field(unit: str, description: str) -> Any:
    """A field with a unit: of a number what it counts, else what the text is."""
    return Field(description=description, json_schema_extra={"unit": unit})


class Described(BaseModel):
    """A part of the form."""

    model_config = ConfigDict(frozen=True)
