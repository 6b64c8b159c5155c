"""The contract of two-phase sinks: the example fulfils it, and it finds typical mistakes."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.application.external.two_phase import TwoPhase
from bettong.application.plan import plan
from bettong.edges.application_file import load
from bettong.testing import TwoPhaseSinkContract
from ledger_file import read_ledger
from ledger_sink import SqliteLedger


class TestSqliteLedger(TwoPhaseSinkContract):
    path: Path

    @pytest.fixture(autouse=True)
    def destination(self, tmp_path: Path) -> None:
        self.path = tmp_path / "ledger.db"

    def open_sink(self) -> SqliteLedger:
        return SqliteLedger(self.path)

    def visible(self, partition: int) -> list[bytes]:
        try:
            return read_ledger(self.path, partition)
        except sqlite3.OperationalError:  # nobody has made the tables yet
            return []


class _ForgetsToUndo(SqliteLedger):
    """Mistake: makes a batch visible when it is prepared."""

    def prepare(self, partition: int, position: bytes) -> None:
        super().prepare(partition, position)
        super().commit(partition, position)


class _SharesItsFile(SqliteLedger):
    """Mistake: does not fence off older sinks."""

    def _own(self, partition: int) -> None:
        pass


class _LosesItsPosition(SqliteLedger):
    """Mistake: commits the position after the rows, so a crash in between loses it."""

    def recover(self, partition: int) -> bytes | None:
        super().recover(partition)
        return None


@pytest.mark.parametrize("kind", [_ForgetsToUndo, _SharesItsFile, _LosesItsPosition])
def test_the_contract_finds_a_broken_sink(kind: Callable[[Path], SqliteLedger], tmp_path: Path) -> None:
    def fails(test: str) -> bool:
        suite = TestSqliteLedger()
        suite.path = tmp_path / f"{test}.db"
        suite.open_sink = lambda: kind(suite.path)  # type: ignore[method-assign]
        try:
            getattr(suite, test)()
        except AssertionError:
            return True
        return False

    tests = [name for name in dir(TwoPhaseSinkContract) if name.startswith("test_")]
    assert any(fails(test) for test in tests)


def test_the_example_is_an_application_that_names_the_sink() -> None:
    planned = plan(
        load(str(Path(__file__).resolve().parents[2] / "examples" / "sqlite_ledger" / "payments.py"))
    )
    (sink,) = planned.sinks
    assert isinstance(sink.to, TwoPhase)
    assert sink.to.open_sink.__name__ == "open_ledger"
