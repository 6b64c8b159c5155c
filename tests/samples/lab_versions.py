"""Git repositories whose commits are versions of an application, with a stand-in for Bettong that measures at once.

It lies in the repository, so that `python -m bettong` there is it, and each commit has its own.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

# Its run appends its version to the file `turns`, and measures what the file `speed` says. The files `wrong` and
# `changes` say after how many turns its results are wrong, and it commits a change.
_MAIN = """
import json, os, pathlib, shutil, signal, sys, time

words = dict(zip(sys.argv[4::2], sys.argv[5::2]))
if (turns := os.environ.get("TURNS")) is not None:
    with open(turns, "a") as file:
        file.write(pathlib.Path("speed").read_text().strip() + " ")
if pathlib.Path("waits").exists():
    signal.signal(signal.SIGTERM, lambda *_: (open(os.environ["TURNS"] + ".ended", "w"), sys.exit(143)))
    open(os.environ["TURNS"] + ".waits", "w").write(str(os.getpid()))
    time.sleep(60)
def is_due(name):
    file = pathlib.Path(name)
    return file.exists() and len(pathlib.Path(turns).read_text().split()) > int(file.read_text())

if is_due("wrong"):
    print("steady, repeat 1 of 1: sending the load", file=sys.stderr)
    sys.exit("bettong: error: the results are wrong")
if is_due("changes"):
    pathlib.Path("app.py").write_text("changed")
    os.system("git -c user.name=a -c user.email=a@b.c -c commit.gpgsign=false commit --quiet -am changed")
number = len(list(pathlib.Path(words["--out"]).parent.glob("*")))
made = pathlib.Path(words["--out"]) / f"2026-11-28T00-00-{number:02}Z-steady"
made.mkdir(parents=True)
speed = float(pathlib.Path("speed").read_text()) + number / 1000
metrics = [{"name": "throughput", "unit": "messages/s", "runs": [{"value": speed}]}]
results = {"date": "2026-11-28", "machine": {"commit": "x"}, "asked": {"run": "steady"}, "measurements": metrics}
(made / "results.json").write_text(json.dumps(results))
(made / "run.toml").write_text('name = "steady"\\nrepeats = 1\\nof_another_version = 1\\n')
shutil.copy("series", made / "series.parquet")
sys.exit(10)
"""
RUN = 'name = "steady"\napplication = "app.py"\nload = "load.py"\nmessages = 10\nrepeats = 2\n'
FILES = {
    "app.py": "",
    "load.py": "",
    "run.toml": RUN,
    "speed": "100",
    "bettong/__init__.py": "",
    "bettong/__main__.py": _MAIN,
    "bettong/lab/__init__.py": "",
    "bettong/lab/run.py": "",
}


def git(folder: Path, *words: str) -> str:
    """What git says."""
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    ended = subprocess.run(
        ("git", *who, "-C", str(folder), *words), check=True, capture_output=True, text=True
    )
    return ended.stdout.strip()


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Files by their names in the folder."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def commit(repository: Path, files: Mapping[str, str], *, tag: str) -> None:
    """Another version, that has a tag."""
    write(repository, files)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", tag)
    git(repository, "tag", tag)


def repository(folder: Path, files: Mapping[str, str] = FILES) -> Path:
    """A new one, of one version that has the tag `old`."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    pq.write_table(pa.table({"repeat": pa.array([1], pa.int32()), "value": [0.5]}), folder / "series")
    commit(folder, files, tag="old")
    return folder.resolve()
