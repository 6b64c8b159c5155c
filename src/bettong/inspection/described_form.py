"""Building blocks of a form for scripts: fields, each with its unit and description. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


def unit_field(unit: str, description: str) -> Any:
    """A field with a unit: what a number counts, or what kind of text it is."""
    return Field(description=description, json_schema_extra={"unit": unit})


class Described(BaseModel):
    """A part of the form."""

    model_config = ConfigDict(frozen=True)
