"""docs/architecture.md says what there is: layers, and the files that a change touches."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PRODUCT = sorted(
    path
    for folder in ("src/bettong", "services")
    for path in (ROOT / folder).rglob("*.py")
    if "v1" not in path.parts
)
BARS = {"sink": 3, "source": 3, "operator": 4, "service": 5, "metric": 2, "key type": 2, "kind of field": 2}
CHANGE = re.compile(r"^\| a new ([\w ]+) \| (\d+) \| (\d+) \| (.+) \|$", re.MULTILINE)
LAYER = re.compile(r"^\d+\. ((?:`\w+`(?:, )?)+): ", re.MULTILINE)
FILE = re.compile(r"`([\w./-]+/[\w.-]+\.\w+)`")


def changes() -> dict[str, tuple[int, int, set[str]]]:
    """Of each kind of change its bar, how many files the page counts, and which it names."""
    return {
        what: (int(bar), int(count), set(FILE.findall(files)))
        for what, bar, count, files in CHANGE.findall(PAGE)
    }


def named_in(name: str) -> set[str]:
    """The modules of the product whose code names it: imports, names and attributes, not texts."""
    return {
        str(path.relative_to(ROOT)) for path in PRODUCT if name in path.read_text() and name in names(path)
    }


def names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias | ast.ClassDef | ast.FunctionDef):
            yield node.name


def test_each_kind_of_change_is_counted_and_a_bar_that_is_missed_is_said() -> None:
    found = changes()
    assert {what: bar for what, (bar, _, _) in found.items()} == BARS
    assert {what: count for what, (_, count, _) in found.items()} == {
        what: len(files) for what, (_, _, files) in found.items()
    }
    missed = [what for what, (bar, count, _) in found.items() if count > bar]
    assert missed == [what for what in BARS if f"The bar for a {what} is missed" in PAGE]


def test_files_that_a_change_touches_are_there() -> None:
    files = {file for _, _, each in changes().values() for file in each}
    assert [file for file in sorted(files) if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize(
    ("what", "name", "beside"),
    [
        ("sink", "AtLeastOnceTcp", set()),
        # A topic is a sink's, too, and the lab feeds topics and reads them.
        (
            "source",
            "KafkaTopic",
            {
                "services/receiver/bettong_receiver/connectors/kafka_topic.py",
                "src/bettong/lab/target/topics.py",
            },
        ),
        ("metric", "BUFFERED", set()),
        ("kind of field", "UuidForm", set()),
    ],
)
def test_what_is_there_of_a_kind_is_named_in_the_files_that_the_page_lists(
    what: str, name: str, beside: set[str]
) -> None:
    _, _, files = changes()[what]
    assert named_in(name) == files | beside


def test_the_code_of_an_operator_is_named_in_the_files_that_the_page_lists() -> None:
    _, _, files = changes()["operator"]
    code = named_in("Mapped") | named_in("flat_mapped") | named_in("MapOperator") | named_in("map_output")
    assert code == files


def test_only_two_modules_know_the_types_of_keys() -> None:
    _, _, files = changes()["key type"]
    assert {str(path.relative_to(ROOT)) for path in PRODUCT if distinguishes_keys(path)} == files - {
        "src/bettong/schema/key_types.py"
    }


def distinguishes_keys(path: Path) -> bool:
    """Whether it asks a key whether it is a str, bytes and an int."""
    asked: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            value, types = node.args
            if isinstance(value, ast.Name) and value.id == "key":
                asked.add(ast.unparse(types))
    return asked >= {"str", "bytes", "int"}


def test_the_layers_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "layers.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each["name"] == "Layers of the library"]
    reported = [set(re.findall(r"`(\w+)`", line)) for line in LAYER.findall(PAGE)]
    # The last one is the foundation, of many modules that stand beside each other.
    assert reported == [set(re.split(r" [|:] ", layer)) for layer in layers[:-1]]
    assert f"\n{len(layers)}. the foundation: " in PAGE


def test_the_page_counts_the_contracts_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "layers.toml").read_text())["tool"]["importlinter"]["contracts"]
    (count,) = re.findall(r"^\| contracts in `layers.toml` \| \d+ \| (\d+) \|$", PAGE, re.MULTILINE)
    assert int(count) == len(contracts)


def test_circles_of_imports_are_checked_in_each_package() -> None:
    linter = tomllib.loads((ROOT / "layers.toml").read_text())["tool"]["importlinter"]
    (ancestors,) = [each["ancestors"] for each in linter["contracts"] if each["type"] == "acyclic_siblings"]
    assert sorted(ancestors) == sorted(linter["root_packages"])
