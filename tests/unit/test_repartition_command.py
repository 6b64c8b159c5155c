"""`bettong repartition`: its command line, and its report of what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.cli.ending import end_well
from bettong.cli.exit_codes import USAGE
from bettong.cli.main import app
from bettong.cli.repartition import outcome_text
from bettong.errors import LocalError
from bettong.inspection.live.repartitioning import Repartitioned
from bettong.local.directories import claim
from bettong.local.record import ProcessRecord, SuiteRecord

ROOT = Path(__file__).parents[2]
WORDS = str(ROOT / "examples" / "word_count.py")


def called(*arguments: str) -> int:
    return end_well(app, ["repartition", WORDS, *arguments], name="bettong")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--partitions", "4", "--back"),
        ("--partitions", "0"),
        ("--partitions", "4097"),
        ("--back", "--dry-run"),
        ("--back", "--give-up", "orders/feed"),
    ],
    ids=["neither", "both", "none", "too many", "back only to look", "back with clients"],
)
def test_wrong_uses_are_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert called(*arguments, "--dir", str(tmp_path)) == USAGE


def test_where_nothing_is_kept_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BETTONG_KAFKA", raising=False)
    assert called("--partitions", "4", "--dir", str(tmp_path)) == LocalError.exit_code
    assert f"nothing runs in {tmp_path}" in capsys.readouterr().err


def test_a_suite_that_runs_has_to_be_ended_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim(tmp_path)
    SuiteRecord(
        application=WORDS,
        name="word-count",
        schedule="resident",
        partitions=4,
        compiled=True,
        directory=tmp_path,
        results=None,
        kafka="127.0.0.1:1",
        redis="redis://127.0.0.1:1/0",
        snapshots="redis",
        addresses={},
        ready=True,
        owner=ProcessRecord.own(),
        services={},
    ).write(tmp_path)
    assert called("--partitions", "4", "--dir", str(tmp_path)) == LocalError.exit_code
    assert f"word-count runs in {tmp_path}: end it with `bettong down`" in capsys.readouterr().err


def test_another_redis_for_a_suite_that_has_its_own_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim(tmp_path)
    given = ("--redis", "redis://127.0.0.1:1/0", "--dir", str(tmp_path))
    assert called("--partitions", "4", *given) == LocalError.exit_code
    assert "--redis alone: the suite in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("found", "back", "dry_run", "text"),
    [
        (Repartitioned(3, 8, {"orders": 1234, "regions": 5}), False, False, "shop has 8 partitions, it had 3 (states:"),
        (Repartitioned(3, 8, {"orders": 1234}), False, True, "8 partitions instead of 3; states: orders 1,234"),
        (Repartitioned(8, 8, {}), False, False, "shop has 8 partitions: there is nothing to do"),
        (Repartitioned(3, 8, {}, was_switched=True), False, True, "would finish the interrupted change: shop has 8"),
        (Repartitioned(3, 8, {}, was_switched=True), False, False, "it had 3; start it with --partitions 8"),
        (Repartitioned(8, 3, {}), True, False, "shop has 3 partitions, as before; the change to 8 is undone"),
    ],
)  # fmt: skip
def test_it_says_what_has_come_of_it(found: Repartitioned, text: str, *, back: bool, dry_run: bool) -> None:
    assert text in outcome_text("shop", found, back=back, dry_run=dry_run)
