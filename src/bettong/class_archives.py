"""Class-data archives: what a JVM of ours loads at its start, parsed and verified once, at setup.

`bettong_processor.recording`, which `bettong setup` and `make setup` call, makes them. Java takes an archive only when
it was made by this very Java from these very jars; else it loads the classes as ever, and says so. So an archive never
changes what happens, only how long it takes. The rule: JEP 350, Dynamic CDS Archives.

A change of the class path of Kafka or Spark needs a new VERSION; then every tree records its archives again.
"""

import shlex
import sys
from pathlib import Path

VERSION = 2
KAFKA, SPARK = "kafka", "spark"


def archive(name: str) -> Path:
    """Where the archive of KAFKA or SPARK lies in this environment."""
    return Path(sys.prefix) / "share" / "bettong" / "java" / f"{name}-{VERSION}.jsa"


def reading(name: str) -> tuple[str, ...]:
    """The options of a JVM that starts from an archive; none when there is no archive."""
    path = archive(name)
    return (f"-XX:SharedArchiveFile={path}",) if path.exists() else ()


def recording(name: str) -> dict[str, str]:
    """The environment in which a JVM writes the archive when it ends, of all classes that it has loaded."""
    return {"JDK_JAVA_OPTIONS": shlex.quote(f"-XX:ArchiveClassesAtExit={archive(name)}")}
