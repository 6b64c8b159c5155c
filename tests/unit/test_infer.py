"""`bettong infer`: the classes that it prints take every row that they were inferred from."""

from __future__ import annotations

import csv
import json
import math
import sys
import types
from collections.abc import Callable
from io import BufferedReader, BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from typer.testing import CliRunner

from bettong.cli.main import app
from bettong.client.example_rows import examples
from bettong.client.message_files import Format, portions
from bettong.client.message_input import MessageFile, Piped, Wanted
from bettong.errors import BettongError, SchemaError
from bettong.frames.columns import Columns
from bettong.frames.text import json_line
from bettong.schema.inferred_classes import class_name, source_of
from bettong.schema.observed import FIELDS_MAX
from bettong.schema.schema import Schema, schema_of


def file_of(text: str) -> MessageFile:
    return Piped("example", BufferedReader(BytesIO(text.encode("utf-8", "surrogatepass"))))


def inferred(text: str, kind: Format = Format.JSON, rows_max: int = 1000) -> str:
    found = examples(file_of(text), kind, rows_max)
    return source_of(found.rows, "Example", "Inferred.", of_text=kind is Format.CSV)


def schema_in(source: str) -> Schema:
    """What the source, run as a module, calls Example."""
    module = types.ModuleType("inferred_example")
    sys.modules[module.__name__] = module
    exec(source, module.__dict__)  # noqa: S102 - that it runs is what is tested
    return schema_of(module.Example)


def decoded(source: str, text: str, kind: Format = Format.JSON) -> list[dict[str, Any]]:
    """The rows as the inferred class reads them, and as a sink writes them."""
    schema = schema_in(source)
    wanted = Wanted(schema.arrow, takes_rows=False, messages_max=100, bytes_max=2**24)
    found: list[dict[str, Any]] = []
    for portion in portions(file_of(text), kind, wanted):
        columns = Columns.of_external_payload(schema, portion.body.serialize().to_pybytes())  # type: ignore[union-attr]
        found += [json.loads(json_line(schema, message)) for message in columns.messages()]
    return found


def fields_in(source: str) -> dict[str, str]:
    """By name, the annotation and comment of each field of Example."""
    body = source.partition("class Example:\n")[2].splitlines()
    return dict(line.strip().split(": ", 1) for line in body if line and not line.strip().startswith("#"))


ROWS = [
    {"n": 1, "price": 1, "at": "2026-01-02T03:04:05Z", "who": "ann", "tags": ["a"], "big": 2**63, "id": "x"},
    {"n": 2, "price": 2.5, "at": "2026-01-03T03:04:05+01:00", "who": None, "tags": [], "big": 1, "id": "y"},
]


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("values", "annotation"),
    [
        ([1, -(2**63)], "int"),
        ([1, 2**64 - 1], "bettong.u64"),
        ([1, 2**64], "float  # whole numbers beyond 2**53 lose digits"),
        ([-1, 2**63], "float  # whole numbers beyond 2**53 lose digits"),
        ([10**400], "bettong.Json  # whole numbers too large for a float"),
        ([1, 2.5], "float  # also whole numbers"),
        ([1.5, "NaN", "-Infinity"], "float"),
        (["NaN"], "str"),
        ([True, False], "bool"),
        ([True, 1], "bettong.Json  # sometimes true or false, sometimes numbers"),
        (["a", "2026-01-02"], "str"),
        (["2026-01-02"], "date  # by the looks of all texts"),
        (["2026-01-02T03:04:05.5Z", "2026-01-02 03:04:05+01:00"], "datetime  # by the looks of all texts"),
        (["2026-01-02T03:04:05"], "str  # times without a zone; a datetime needs one, such as Z at the end"),
        (["2026-13-02"], "str"),
        (["123e4567-e89b-12d3-a456-426614174000"], "UUID"),
        (["a", None], "str | None  # null in 1 of 2"),
        ([None, None], "bettong.Json = None  # null in 2 of 2; always null, so any JSON"),
        ([[1], []], "list[int]"),
        ([[1, None]], "list[int | None]"),
        ([[], []], "list[bettong.Json]  # always empty, so items of any JSON"),
        ([[[1.5]]], "list[list[float]]"),
        ([[1, "a"]], "list[bettong.Json]  # items: sometimes numbers, sometimes texts"),
        ([{}], "dict[str, bettong.Json]  # always empty, so values of any JSON"),
        ([{"a-b": "2026-01-02"}, {"c": None}], "dict[str, date | None]  # its keys are no names in Python"),
        (
            [{f"k{key}": key for key in range(FIELDS_MAX + 1)}],
            f"dict[str, int]  # more than {FIELDS_MAX} keys",
        ),
        ([{"a": 1}], "Value"),
        ([{"class": 1, "a": "b"}], "dict[str, bettong.Json]  # its keys are no names in Python; values: "),
        ([[[[[[[[[[1]]]]]]]]]], "list[list[list[list[list[bettong.Json]]]]]  # items: nested deeply"),
    ],
)
def test_a_type_is_the_narrowest_that_holds_all_values(values: list[Any], annotation: str) -> None:
    text = lines(*({"value": value} for value in values))
    source = inferred(text)
    assert fields_in(source)["value"].startswith(annotation)
    assert len(decoded(source, text)) == len(values)


def test_what_some_rows_lack_may_be_none() -> None:
    text = lines({"a": 1, "b": "x"}, {"a": 2}, {"a": 3, "b": None})
    source = inferred(text)
    assert fields_in(source) == {"a": "int", "b": "str | None  # missing in 1, null in 1 of 3"}
    assert [row["b"] for row in decoded(source, text)] == ["x", None, None]


def test_json_that_some_rows_lack_has_a_default_and_is_last() -> None:
    text = lines(
        {"mixed": 1, "bettong": "x", "z": [1]}, {"mixed": "a", "z": 2, "last": 1}, {"bettong": 3, "last": 1}
    )
    source = inferred(text)
    assert list(fields_in(source)) == ["last", "mixed", "z", "bettong"]
    assert [row["mixed"] for row in decoded(source, text)] == [1, "a", None]


def test_objects_become_classes_with_names_of_their_own() -> None:
    text = lines(
        {"lines": [{"line": {"n": 1}}], "example": {"n": 2}, "uuid": {"date": {"x": 1}}, "none": {"y": 1}}
    )
    source = inferred(text)
    assert [line for line in source.splitlines() if line.startswith("class ")] == [
        "class Line2:",
        "class Line:",
        "class Example2:",
        "class Date:",
        "class Uuid:",
        "class RowNone:",
        "class Example:",
    ]
    assert len(decoded(source, text)) == 1


def test_what_python_has_no_name_for_is_left_out_and_said() -> None:
    text = lines({"class": 1, "a b": 2, "__x": 3, "\ufb01": 4, "self": 5, "n\n": 6})
    source = inferred(text)
    assert list(fields_in(source)) == ["self"]
    for key in ("class", "a b", "__x", "\ufb01", "n\n"):
        assert f"    # {key!r} is left out: it is no name in Python; rename it in the data\n" in source
    assert decoded(source, text) == [{"self": 5}]


def test_what_no_field_can_hold_is_left_out_and_said() -> None:
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    text = lines({"deep": deep, "half": "\ud800", "odd": [math.nan, "a"], "n": 1})
    source = inferred(text)
    assert list(fields_in(source)) == ["n"]
    assert "# 'half' is left out: no field can hold all of its values" in source
    assert "# 'odd' is left out: sometimes numbers, sometimes texts, with NaN" in source
    assert decoded(source, text) == [{"n": 1}]


keys = some.sampled_from(["a", "b", "self", "date", "bettong", "class", "a-b", "Example"]) | some.text(
    max_size=3
)
texts = some.text(max_size=5) | some.sampled_from(
    ["2026-01-02", "2026-01-02T03:04:05Z", "123e4567-e89b-12d3-a456-426614174000", "NaN", "Infinity", ""]
)
plain = some.none() | some.booleans() | some.integers() | some.floats() | texts
values = some.recursive(
    plain,
    lambda held: some.lists(held, max_size=3) | some.dictionaries(keys, held, max_size=3),
    max_leaves=12,
)


def is_same(found: Any, given: Any, source: str) -> bool:
    """Whether what was read is what was given, in what the classes have."""
    if isinstance(found, dict):
        left_out = [key for key in given if key not in found]
        return all(f"{key!r} is left out" in source for key in left_out) and all(
            is_same(value, given.get(key), source) for key, value in found.items()
        )
    if isinstance(found, list):
        return len(found) == len(given) and all(map(is_same, found, given, [source] * len(found)))
    if isinstance(given, float) and not math.isfinite(given):
        return bool(found == ("NaN" if math.isnan(given) else "Infinity" if given > 0 else "-Infinity"))
    if isinstance(given, int) and isinstance(found, float):
        return found == float(given)
    return bool(found == given)


@settings(max_examples=150, deadline=None)
@given(rows=some.lists(some.dictionaries(keys, values, max_size=4), min_size=1, max_size=5))
def test_every_row_is_read_by_what_was_inferred_from_it(rows: list[dict[str, Any]]) -> None:
    rows = [row | {"number": number} for number, row in enumerate(rows)]
    text = lines(*rows)
    source = inferred(text)
    found = decoded(source, text)
    assert all(map(is_same, found, rows, [source] * len(rows))), (source, found)


KINDS_OF_CELLS = [
    some.integers(-(2**70), 2**70).map(str),
    some.floats().map(str),
    some.sampled_from(["true", "false", ""]),
    some.sampled_from(["007", "1", ""]),
    some.sampled_from(["1", "NaN", "2.50", ""]),
    some.dates().map(str),
    some.sampled_from(['[1, "a"]', '{"a": 1}', "[]", "", "{}"]),
    some.sampled_from(['{"a": 1}', '{"a": null, "b": "x"}']),
    some.just(""),
    some.text(some.characters(exclude_categories=["C"]), max_size=4),
]
cells = some.one_of([some.lists(kind, min_size=3, max_size=3) for kind in KINDS_OF_CELLS])


@settings(max_examples=150, deadline=None)
@given(columns=some.lists(cells, min_size=1, max_size=4))
def test_every_cell_is_read_by_what_was_inferred_from_it(columns: list[list[str]]) -> None:
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["number", *(f"c{index}" for index in range(len(columns)))])
    writer.writerows([number, *row] for number, row in enumerate(zip(*columns, strict=True)))
    source = inferred(stream.getvalue(), Format.CSV)
    found = decoded(source, stream.getvalue(), Format.CSV)
    assert [row["number"] for row in found] == [0, 1, 2]
    for index, column in enumerate(columns):
        read = [row[f"c{index}"] for row in found]
        if fields_in(source)[f"c{index}"].startswith("str"):
            assert [value or "" for value in read] == column


@pytest.mark.parametrize(
    ("cells", "annotation"),
    [
        (["01234", "1"], "str"),
        (["1", "2"], "int"),
        (["1", "2.50"], "float"),
        (["1", "NaN"], "float"),
        (["12345678901234567890123", "1"], "str"),
        (["true", "false"], "bool"),
        (["true", ""], "bool | None  # null in 1 of 2"),
        (["", ""], "str | None  # null in 2 of 2; always empty"),
        (["[1]", "[]"], "list[int]"),
        (["[1]", "1"], "str"),
        (["2026-01-02", ""], "date | None"),
    ],
)
def test_cells_of_one_column_are_of_one_kind_or_text(cells: list[str], annotation: str) -> None:
    text = "c,d\n" + "".join(f'"{cell}",x\n' for cell in cells)
    source = inferred(text, Format.CSV)
    assert fields_in(source)["c"].startswith(annotation)
    assert len(decoded(source, text, Format.CSV)) == 2


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (Format.JSON, "", "example: it has no row to infer from"),
        (Format.JSON, '{"a": 1}\n[1]\n', "example, line 2: list, expected an object"),
        (Format.JSON, "{}\n", "no row has a field that a class could have"),
        (Format.CSV, "", "example: it is empty"),
        (Format.CSV, "a,b\n", "example: it has no row to infer from"),
        (Format.CSV, "a,b\n1,2\n\n1\n", "example, row 2: 1 cells, expected 2: a, b"),
    ],
)
def test_a_row_that_is_none_is_named(kind: Format, text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        inferred(text, kind)


def test_an_ending_that_tells_no_format_is_told_those_that_can_be_inferred(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("{}")
    with pytest.raises(BettongError, match=r"give --format json\|csv$"):
        CliRunner().invoke(app, ["infer", str(tmp_path / "app.py")], catch_exceptions=False)


def test_more_fields_than_a_message_has_are_refused() -> None:
    with pytest.raises(SchemaError, match=f"more than {FIELDS_MAX} different fields"):
        inferred(lines({f"k{key}": 1 for key in range(FIELDS_MAX + 1)}))
    with pytest.raises(BettongError, match="inferred from JSON lines and CSV; parquet is neither"):
        inferred("", Format.PARQUET)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("payments", "Payment"),
        ("status", "Status"),
        ("address", "Address"),
        ("my-file_2", "MyFile2"),
        ("none", "RowNone"),
        ("2026", "Row2026"),
        ("--", "Row"),
    ],
)
def test_a_class_is_called_as_one_of_what_its_file_holds(text: str, name: str) -> None:
    assert class_name(text) == name


@pytest.fixture
def infer() -> Callable[..., Any]:
    runner = CliRunner()
    return lambda *arguments, given=None: runner.invoke(app, ["infer", *map(str, arguments)], input=given)


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_the_command_says_how_many_rows_it_read(kind: str, infer: Callable[..., Any], tmp_path: Path) -> None:
    text = lines(*ROWS) if kind == "json" else "n,n,m\n1,1,2\n2,2,3\n"
    (file := tmp_path / f"payments.{kind}").write_text(text)
    repeated = "" if kind == "json" else " Left out, several columns each: 'n'."
    every, first = infer(file), infer(file, "--rows", 1, "--name", "Orders")
    assert every.output.startswith(f"# Inferred from all 2 rows of payments.{kind}.{repeated}\n")
    assert "class Payment:" in every.output
    assert first.output.startswith(f"# Inferred from the first 1 row of payments.{kind}.{repeated}\n")
    assert "class Orders:" in first.output
    piped = infer("-", "--format", kind, given=text)
    assert piped.output.startswith(f"# Inferred from all 2 rows of standard input.{repeated}\n")
    assert "class Message:" in piped.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-"], "- has no file ending"),
        (["nothing.jsonl"], "'nothing.jsonl' is not a file"),
        (["-", "--format", "json", "--name", "class"], "--name 'class' is not a class name"),
    ],
)
def test_a_wrong_call_is_told(arguments: list[str], reason: str, infer: Callable[..., Any]) -> None:
    done = infer(*arguments)
    assert done.exit_code == 2
    assert reason in " ".join(done.output.replace("│", " ").split())


def test_the_page_shows_what_it_prints(infer: Callable[..., Any], tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "schemas.md").read_text()
    given, printed = (
        page.partition(f"\n{before}\n\n```{kind}\n")[2].partition("```")[0]
        for before, kind in (
            ("CSV, `-` for standard input, and the first 10,000 rows (`--rows`). For three lines", "text"),
            ("it prints", "python"),
        )
    )
    (file := tmp_path / "payments.jsonl").write_text(given)
    assert infer(file).output == printed
