"""The shell completes commands and options of `bettong`, by the code that --install-completion writes."""

import pytest
from typer.testing import CliRunner

from bettong.cli.main import app


@pytest.mark.parametrize(("typed", "expected"), [("dead", "dead-letters"), ("send --on", "--on-error")])
def test_what_was_begun_is_completed(typed: str, expected: str) -> None:
    environment = {
        "_BETTONG_COMPLETE": "complete_bash",
        "COMP_WORDS": f"bettong {typed}",
        "COMP_CWORD": str(len(typed.split())),
    }
    found = CliRunner().invoke(app, [], prog_name="bettong", env=environment)
    assert found.output.split() == [expected]
