"""An example in every way that must make no difference, over drawn cases: the kit finds no fault there."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from bettong.edges.application_file import load
from bettong.testing import cases, check

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_nothing_makes_a_difference_to_turnover() -> None:
    app = load(str(EXAMPLES / "turnover.py"))
    fields = {"cents": st.sampled_from([100, 5000]), "quantity": st.sampled_from([1, 900])}
    check(app, cases(app, fields=fields, inputs_max=8), examples=6)
