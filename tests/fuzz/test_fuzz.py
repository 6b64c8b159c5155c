"""Every parser reads what the corpus keeps, and what can be made of it in some seconds; and fuzzing does find."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import fuzzing
from tests.fuzz.mutating import mutated
from tests.fuzz.registry import HARNESSES

# Of each parser, behind its corpus: all together take some seconds of one core. `make fuzz` takes an hour; CI's,
# which has the same seed, reads these inputs first and then more.
_SECONDS = 0.25
# The same inputs each time, as far as the time goes: new ones are for `make fuzz`, so that no test fails by chance.
_SEED = 1


@pytest.mark.parametrize("name", HARNESSES)
def test_a_parser_has_a_corpus(name: str) -> None:
    assert len(HARNESSES[name].corpus()) > 0


@pytest.mark.slow
def test_each_parser_gives_a_value_or_its_own_error() -> None:
    outcomes = fuzzing.fuzz(list(HARNESSES), seed=_SEED, seconds=_SECONDS)
    for outcome in outcomes:
        assert outcome.finding is None, f"{fuzzing.keep(outcome)}\n{outcome.said}"
        assert outcome.count > 0
    assert [outcome.name for outcome in outcomes] == list(HARNESSES)


def dies(data: bytes) -> None:
    """As a parser that follows an offset out of its memory."""
    if data.startswith(b"!"):
        os.kill(os.getpid(), signal.SIGSEGV)


def raises(data: bytes) -> None:
    """As a parser that forgot an error."""
    if b"!" in data:
        raise KeyError(data)


def endless(data: bytes) -> None:
    """As a parser that never comes back."""
    while b"!" in data:
        time.monotonic()


def hoards(data: bytes) -> None:
    """As a parser that believes a length."""
    if b"!" in data:
        bytearray(2**31)


@pytest.mark.parametrize(
    ("read", "reported"), [(dies, "-11"), (raises, "KeyError"), (endless, "-27"), (hoards, "MemoryError")]
)
def test_whatever_goes_wrong_is_found_with_its_input(
    read: object, reported: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = read.__name__  # type: ignore[attr-defined]
    planted = tmp_path / "planted.py"
    planted.write_text(
        "import sys\n"
        "from tests.fuzz import child, test_fuzz\n"
        "from tests.fuzz.harness import Harness\n"
        "child.INPUT_S_MAX = 0.5\n"
        f"child.HARNESSES[{name!r}] = Harness({name!r}, test_fuzz.{name}, lambda: [b'a'], (b'!',))\n"
        "sys.exit(child.main(sys.argv[1:]))\n"
    )
    monkeypatch.setattr(fuzzing, "CHILD", [str(planted)])
    monkeypatch.setenv("PYTHONPATH", str(fuzzing.ROOT))
    (outcome,) = fuzzing.fuzz([name], seed=1, seconds=30)
    assert outcome.name == name
    assert outcome.finding is not None
    assert b"!" in outcome.finding
    assert reported in outcome.said


def test_what_was_found_stands_at_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def outcomes(names: list[str], **_: object) -> list[fuzzing.Outcome]:
        return [
            fuzzing.Outcome(name, 3, b"bad" if name == "frames" else None, "KeyError: 1") for name in names
        ]

    monkeypatch.setattr(fuzzing, "fuzz_all", outcomes)
    monkeypatch.setattr(fuzzing, "_engines", lambda: [None])
    monkeypatch.setattr(fuzzing, "ROOT", tmp_path)
    monkeypatch.setattr(fuzzing, "FINDINGS", tmp_path / "fuzz-findings")
    assert fuzzing.main(["--seconds", "1", "frames", "columns"]) == 1
    finding, said = capsys.readouterr().out.splitlines()[-2:]
    assert finding.startswith("FINDING in frames: fuzz-findings/frames/")
    assert finding.endswith(".bin: b'bad'")
    assert said == "KeyError: 1"
    assert fuzzing.main(["--seconds", "1", "columns"]) == 0


def test_the_same_seed_gives_the_same_inputs() -> None:
    inputs = [b"one", b"another", b""]
    runs = [[mutated(random, inputs, (b"word",)) for _ in range(300)] for random in (Random(7), Random(7))]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 150
