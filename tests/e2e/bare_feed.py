"""Runs the bare client: protos compiled anew into a folder, in a Python that cannot find Bettong."""

import json
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_CLIENT = Path(__file__).with_name("bare_client.py")
_SECONDS_MAX = 120


@dataclass(frozen=True, slots=True)
class Answer:
    """What the sender answered."""

    source: str
    takes_rows: bool
    acknowledged: int


def feed(target: str, source: str, stream: str, frames: list[list[bytes]]) -> Answer:
    """Feeds each list of rows as one frame."""
    with tempfile.TemporaryDirectory() as folder:
        _run(
            "-m",
            "grpc_tools.protoc",
            f"--proto_path={_ROOT / 'protos'}",
            f"--python_out={folder}",
            f"--grpc_python_out={folder}",
            *(f"bettong/v1/{name}.proto" for name in ("frame", "ingest")),
        )
        # Without `site`, no .pth file leads to our sources; what else is installed is found by its folder.
        rows = json.dumps([[row.hex() for row in frame] for frame in frames])
        path = [folder, sysconfig.get_path("purelib")]
        find = f"import runpy, sys; sys.path += {path!r}; del sys.argv[0]"
        run = "runpy.run_path(sys.argv[0], run_name='__main__')"
        reported = _run("-I", "-S", "-c", f"{find}; {run}", str(_CLIENT), target, source, stream, text=rows)
    return Answer(**json.loads(reported))


def _run(*arguments: str, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
