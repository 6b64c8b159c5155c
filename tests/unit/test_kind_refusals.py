"""Types that no field can have, and positions where a kind of field is invalid: each refusal says what to write."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import pytest

import bettong
from bettong import Application, ApplicationError, AtMost, Precision, Width
from bettong.errors import SchemaError
from bettong.schema.annotations import DEPTH_MAX, field_of
from bettong.schema.schema import schema_of
from tests.samples.kinds import KINDS


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (int | str, "a union of several types; a field has one"),
        (int | str | None, "a union of several types"),
        (bettong.Json | None, "leave `. None` out"),
        (list, "a list says what it holds"),
        (dict, "a dict is by text and says what it holds"),
        (dict[int, str], "a dict is by text"),
        (tuple[int, str], "use a dataclass, or tuple"),
        (bettong.__all__.__class__, "a list says what it holds"),
        (KINDS["decimal"].annotation.__origin__, "a Decimal needs its precision: Annotated"),
        (list[complex], r"field 'item': .* is no field type; expected int, float"),
        (set[int], "is no field type"),
        (Any, "bettong.Json"),
    ],
)
def test_an_annotation_that_no_field_can_have_says_what_to_write(annotation: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=rf"^field 'x': .*{reason}"):
        field_of("x", annotation)


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (Annotated[int, Width(3)], "Width bounds str and bytes, and this is int: leave it out"),
        (Annotated[list[int], Width(3)], r"Width bounds str and bytes, and this is list\[int\]"),
        (Annotated[dict[str, int], Width(3)], r"Width bounds str and bytes, and this is dict\[str, int\]"),
        (Annotated[bettong.Json, Width(3)], "Width bounds str and bytes"),
        (Annotated[datetime, Width(3)], "Width bounds str and bytes, and this is datetime"),
        (Annotated[str, AtMost(3)], r"AtMost bounds list\[T\] and tuple\[T, ...\], and this is str"),
        (Annotated[bytes, AtMost(3)], r"AtMost bounds .*, and this is bytes"),
        (Annotated[dict[str, int], AtMost(1)], r"AtMost bounds .*, and this is dict\[str, int\]"),
        (Annotated[dict[str, int] | None, AtMost(1)], r"AtMost bounds .*, and this is dict\[str, int\]"),
        (list[Annotated[bool, AtMost(1)]], r"field 'item': AtMost bounds .*, and this is bool"),
        (Annotated[float, Precision(9, 2)], "Precision bounds Decimal, and this is float"),
        (Annotated[list[int], AtMost(1), AtMost(5)], "has 2 marks AtMost: leave all but one out"),
    ],
)
def test_a_mark_that_bounds_nothing_is_refused(annotation: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=rf"^field 'x': .*{reason}"):
        field_of("x", annotation)


@pytest.mark.parametrize(
    ("mark", "arguments", "complaint"),
    [
        (AtMost, ("3",), "AtMost('3'): expected 1 to "),
        (AtMost, (3.0,), "AtMost(3.0): expected 1 to "),
        (AtMost, (True,), "AtMost(True): expected 1 to "),
        (Precision, ("18", 4), "Precision('18', 4): expected 1 to "),
        (Precision, (18, None), "Precision(18, None): expected 1 to "),
        (Precision, (18.0, 4), "Precision(18.0, 4): expected 1 to "),
    ],
)
def test_a_mark_is_of_whole_numbers(mark: Any, arguments: tuple[Any, ...], complaint: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(complaint)):
        mark(*arguments)


@pytest.mark.parametrize(
    ("annotation", "token"),
    [
        (list[Annotated[str, Width(3)]], "x:list(item:text:|S3)"),
        (Annotated[list[Annotated[str, Width(3)]], AtMost(2)], "x:list(item:text:|S3, at most 2)"),
        (Annotated[list[int] | None, AtMost(2)], "x:optional(:list(item:int:<i8, at most 2))"),
        (Annotated[list[int], AtMost(2)] | None, "x:optional(:list(item:int:<i8, at most 2))"),
        (Annotated[tuple[int, ...], AtMost(2)], "x:list(item:int:<i8, at most 2)"),
        (Annotated[bytes | None, Width(3)], "x:optional(:bytes:|S3)"),
        (Annotated[int, "of anything else", Width], "x:int:<i8"),
    ],
)
def test_a_mark_is_of_the_type_that_it_is_at(annotation: Any, token: str) -> None:
    assert field_of("x", annotation).token == token


@dataclass
class Tree:
    """Holds itself."""

    left: Tree | None
    right: Tree | None


def test_a_class_that_holds_itself_is_refused() -> None:
    with pytest.raises(SchemaError, match=f"within more than {DEPTH_MAX} others; does a class hold itself"):
        schema_of(Tree)


@pytest.mark.parametrize("kind", ["uuid", "datetime", "text_enum", "optional_int"])
def test_such_a_field_is_no_key_but_a_function_of_it_is(kind: str) -> None:
    case = KINDS[kind]
    app = Application("meters")
    with pytest.raises(ApplicationError, match="give a function of the message"):
        app.source("samples", schema=case.message, key="value")
    app.source("samples", schema=case.message, key=lambda message: str(message.value))


def test_schemas_of_dataclasses_import_no_pydantic() -> None:
    code = (
        "import sys, dataclasses, datetime, bettong\n"
        "from bettong.schema.schema import schema_of\n"
        "@dataclasses.dataclass\nclass A:\n    at: datetime.datetime\n    b: list[int]\n"
        "schema_of(A)\nprint('pydantic' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
