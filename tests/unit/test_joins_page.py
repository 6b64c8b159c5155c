"""The code of docs/joins.md is an application, block by block."""

from pathlib import Path

from bettong.application.plan import plan
from bettong.worker.stage_program import program
from tests.samples.page_code import page_module

PAGE = Path(__file__).resolve().parents[2] / "docs" / "joins.md"


def test_the_code_of_the_page_is_an_application() -> None:
    (stage,) = plan(page_module(PAGE).app).stages
    program(stage, compiled=True)
    assert [each.node.name for each in stage.operators] == [
        "paid",
        "greet",
        "sold",
        "paid-late-right",
        "settled",
    ]
