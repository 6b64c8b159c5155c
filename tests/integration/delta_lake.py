"""Delta Lake in Spark's session, as docs/spark.md says, where Maven has fetched its jars on this machine."""

import re
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"
REPOSITORY = Path.home() / ".m2" / "repository"


def delta_jars() -> list[Path]:
    """Those that the page names, and what they cannot do without; none where one of them is missing."""
    (named,) = set(re.findall(r"--packages io\.delta:([\w.-]+):([\d.]+)", PAGE.read_text()))
    artifact, version = named
    found = [
        REPOSITORY / "io" / "delta" / each / version / f"{each}-{version}.jar"
        for each in (artifact, "delta-storage")
    ]
    return found if all(jar.is_file() for jar in found) else []


def delta_options() -> Mapping[str, str]:
    """What the page tells Spark."""
    return dict(re.findall(r"--conf (spark\.sql\.[\w.]+)=(\S+)", PAGE.read_text()))
