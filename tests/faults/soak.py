"""`make soak`: the spec of `soak.toml`, its input made to its length, run by the command that users run."""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bettong.cli.exit_codes import TERMINATED
from bettong.local.interrupts import Terminated, terminable
from tests.faults import inputs

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MESSAGES_PER_S = 20_000
_STOP_S_MAX = 60.0


def main(arguments: list[str] | None = None) -> int:
    """The exit code of `bettong chaos`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long faults come (60)")
    parser.add_argument("--report", type=Path, default=ROOT / "bench-results" / "soak.json")
    parser.add_argument("--logs", type=Path, help="keep the logs of all processes there")
    chosen = parser.parse_args(arguments)
    seconds = round(60 * chosen.minutes)
    chosen.report.parent.mkdir(parents=True, exist_ok=True)
    try:
        with terminable():
            return _run(chosen.report, chosen.logs, seconds)
    except Terminated:
        return TERMINATED


def _run(report: Path, logs: Path | None, seconds: int) -> int:
    with tempfile.TemporaryDirectory(prefix="bettong-soak-") as folder:
        inputs.amounts(Path(folder), count=MESSAGES_PER_S * seconds)
        spec = Path(shutil.copy(HERE / "soak.toml", folder))
        command = [sys.executable, "-m", "bettong", "chaos", str(spec), "--for", f"{seconds}s"]
        command += ["--report", str(report)]
        command += ["--logs", str(logs)] if logs is not None else []
        with subprocess.Popen(command, cwd=ROOT) as process:
            try:
                return process.wait()
            except BaseException:
                process.terminate()  # so that it stops what it started
                process.wait(_STOP_S_MAX)
                raise


if __name__ == "__main__":
    sys.exit(main())
