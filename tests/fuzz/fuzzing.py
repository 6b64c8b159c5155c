"""Fuzzes the parsers in processes of their own: `python -m tests.fuzz.fuzzing [--seconds S] [NAME ...]`.

Prints for each how many inputs it read. A finding is an exception that is not the parser's own, a crash, 20 s of CPU or
a GiB for one input: its input is kept below `fuzz-findings`, and the command ends with 1. Mended, it goes into the
corpus.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from pathlib import Path
from random import SystemRandom

from tests.fuzz.child import CLOCK_TIMES_MAX, left_behind
from tests.fuzz.engine import SetupError, fetch_atheris
from tests.fuzz.harness import CORPUS, Harness
from tests.fuzz.registry import HARNESSES

ROOT = Path(__file__).resolve().parents[2]
FINDINGS = ROOT / "fuzz-findings"
CHILD = ["-m", "tests.fuzz.child"]
GUIDED = ["-m", "tests.fuzz.guided"]
_SIDE_BY_SIDE = 2
_HOUR_S = 3600.0
# Of CPU, on top, for a child that neither ends nor dies: its imports and its corpus are far below.
_GRACE_S = 60.0
# What one process feeds, one parser after the other, takes about so long together: its imports take seconds.
_PROCESS_S = 75.0
_NICE_MOST = 19
_LINES_SHOWN = 12
_BYTES_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a harness: inputs read, and of a finding its input and what the process said."""

    name: str
    count: int
    finding: bytes | None = None
    said: str = ""


def fuzz(names: Sequence[str], *, seed: int, seconds: float, engine: Path | None = None) -> list[Outcome]:
    """Some harnesses, `seconds` of CPU each, in one process that may die of it; a finding is the last outcome.

    `engine`: where atheris is, if it leads.
    """
    with tempfile.TemporaryDirectory() as folder:
        in_flight = Path(folder) / "in-flight"
        child, path = (CHILD, []) if engine is None else (GUIDED, [str(engine)])
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, *child, ",".join(names), str(in_flight), str(seed), str(seconds)]
        limit_s = (seconds * len(names) + _GRACE_S) * CLOCK_TIMES_MAX
        with (Path(folder) / "said").open("w+b") as raised:
            try:
                done = subprocess.run(
                    command,
                    cwd=ROOT,
                    env=environment,
                    stdout=raised,
                    stderr=subprocess.PIPE,
                    check=False,
                    timeout=limit_s,
                )
                code, said = done.returncode, done.stderr.decode(errors="replace")
            except subprocess.TimeoutExpired:
                code, said = 1, f"it did not end within {limit_s:.0f} s"
            raised.seek(0)
            counts = [int(line) for line in raised.read().split()]
        outcomes = [Outcome(name, count) for name, count in zip(names, counts, strict=False)]
        if code != 0:
            name = names[min(len(counts), len(names) - 1)]
            outcomes.append(Outcome(name, *left_behind(in_flight), f"seed {seed}, ended with {code}\n{said}"))
    return outcomes


def fuzz_all(
    names: Sequence[str], *, seed: int, seconds: float, engine: Path | None = None
) -> Iterator[Outcome]:
    """As `fuzz`, and goes on behind a finding with the next one."""
    while names:
        outcomes = fuzz(names, seed=seed, seconds=seconds, engine=engine)
        yield from outcomes
        names = names[len(outcomes) :]


def keep(outcome: Outcome) -> Path:
    """Writes a finding's input to a file."""
    data = outcome.finding or b""
    path = FINDINGS / outcome.name / f"{hashlib.sha256(data).hexdigest()[:16]}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def described(outcome: Outcome) -> str:
    """Which parser, where the input is kept and how it begins, and the end of what the process said."""
    beginning = (outcome.finding or b"")[:_BYTES_SHOWN]
    said = "\n".join(outcome.said.splitlines()[-_LINES_SHOWN:])
    return f"FINDING in {outcome.name}: {keep(outcome).relative_to(ROOT)}: {beginning!r}\n{said}"


def write_seeds(harness: Harness) -> None:
    """Puts the valid samples into the corpus, as they are now."""
    folder = CORPUS / harness.name
    folder.mkdir(parents=True, exist_ok=True)
    for index, data in enumerate(harness.seeds()):
        (folder / f"seed-{index}.bin").write_bytes(data)


def say(line: str) -> None:
    """For whoever waits."""
    print(line, flush=True)  # noqa: T201


def _engines() -> list[Path | None]:
    """Changes made by chance, and those that atheris makes where it can be had."""
    try:
        return [None, fetch_atheris()]
    except SetupError as error:
        say(f"without atheris, by chance alone: {error}")
        return [None]


def be_idle() -> None:
    """From now on we get what nobody else wants, also where Linux shares the cores among sessions first.

    Who ends us then ends our children.
    """
    os.nice(_NICE_MOST)
    with suppress(PermissionError):  # we lead a group of processes already
        os.setsid()
    with suppress(OSError):  # the kernel knows no groups of sessions
        Path("/proc/self/autogroup").write_text(str(_NICE_MOST))
    if os.getpgrp() == os.getpid():
        signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))


def main(arguments: Sequence[str]) -> int:
    """Fuzzes in turns, `--seconds` in all."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *HARNESSES], metavar="NAME", help="default: all")
    parser.add_argument(
        "--seconds", type=float, default=_HOUR_S, help="of two cores, in all; default: an hour"
    )
    parser.add_argument("--seed", type=int, default=None, help="repeats a run")
    parser.add_argument("--idle", action="store_true", help="only where nobody else wants the cores")
    parser.add_argument("--seeds", action="store_true", help="only write valid samples into the corpus")
    given = parser.parse_args(arguments)
    names = given.names or list(HARNESSES)
    if given.seeds:
        for name in names:
            write_seeds(HARNESSES[name])
        return 0
    if given.idle:
        be_idle()
    seed = SystemRandom().randrange(2**32) if given.seed is None else given.seed
    engines = _engines()
    share_s = given.seconds * _SIDE_BY_SIDE / len(names) / len(engines)
    say(
        f"{len(names)} parsers, {len(engines)} time(s) {share_s:.0f} s each, {_SIDE_BY_SIDE} at a time; --seed {seed}"
    )
    findings = []
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as threads:
        size = max(1, round(_PROCESS_S / share_s))
        parts = [names[at : at + size] for at in range(0, len(names), size)]
        work = partial(fuzz_all, seed=seed, seconds=share_s)
        calls = threads.map(lambda turn: list(work(turn[0], engine=turn[1])), product(parts, engines))
        for outcome in chain.from_iterable(calls):
            say(f"{outcome.name:15} {outcome.count:>10,} inputs")
            if outcome.finding is not None:
                findings.append(outcome)
    say(f"{len(findings)} finding(s)" if findings else "nothing found")
    for outcome in findings:  # at the end, which is what is seen of a long output
        say(described(outcome))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
