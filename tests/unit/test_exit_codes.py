"""Exit codes: the page, the error tree and the commands say the same."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from bettong.cli import exit_codes
from bettong.cli.chaos import chaos
from bettong.errors import FINAL_ERRORS, BettongError
from bettong.local.supervision import FINAL_STATUSES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "exit-codes.md").read_text()
ROW = re.compile(r"^\| (\d+) \| (.+) \|$", re.MULTILINE)
DOCUMENTED = {int(code): meaning for code, meaning in ROW.findall(PAGE)}
# Of the command line itself, beside those of errors.
OWN = {value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}


def codes(tree: ast.AST) -> Iterator[int]:
    """Numbers that a module gives as `exit_code` of a class, or ends with."""
    for node in ast.walk(tree):
        values: list[ast.expr | None] = []
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                named = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
                if any(isinstance(target, ast.Name) and target.id == "exit_code" for target in named):
                    values.append(getattr(each, "value", None))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("typer.Exit", "sys.exit"):
            values.extend(node.args)
        yield from (each.value for each in values if isinstance(each, ast.Constant))  # type: ignore[misc]


def test_the_page_has_each_code_of_the_error_tree_and_of_the_commands_and_no_other() -> None:
    errors = [BettongError]
    for error in errors:
        errors.extend(error.__subclasses__())
    assert len(errors) > 20
    assert set(DOCUMENTED) == {0} | OWN | {error.exit_code for error in errors}
    assert list(DOCUMENTED) == sorted(DOCUMENTED)
    assert len(ROW.findall(PAGE)) == len(DOCUMENTED), "each once"


def test_a_command_that_says_in_its_help_what_it_ends_with_says_a_code_of_the_page() -> None:
    said = re.search(r"\bEnds with (\d+) when", chaos.__doc__ or "")
    assert said
    assert int(said[1]) == exit_codes.BROKEN
    assert DOCUMENTED[int(said[1])].startswith("chaos: ")


def test_no_class_and_no_command_anywhere_ends_with_a_code_that_the_page_lacks() -> None:
    files = [path for folder in ("src", "services") for path in (ROOT / folder).rglob("*.py")]
    found = {path: set(codes(ast.parse(path.read_text()))) - set(DOCUMENTED) for path in files}
    assert {path.name: left for path, left in found.items() if left} == {}
    assert set(codes(ast.parse((ROOT / "src/bettong/errors.py").read_text()))) >= {3, 4, 5, 6, 8, 9, 11}


def test_the_codes_that_no_new_start_mends_are_those_that_the_pages_name() -> None:
    final = sorted({error.exit_code for error in FINAL_ERRORS})
    assert set(final) == FINAL_STATUSES
    *most, last = map(str, final)
    operations = (ROOT / "docs" / "operations.md").read_text()
    assert f"an exit code that no new start mends ({', '.join(most)} or {last}, [exit-codes.md]" in operations
