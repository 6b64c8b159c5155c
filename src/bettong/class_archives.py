"""Class-data archives: what a JVM of ours loads at its start, parsed and verified once, at setup.

`bettong_processor.recording`, which `bettong setup` and `make setup` call, makes them. Java takes an archive only when
it was made by this very Java from these very jars; else it loads the classes as ever, and says so. So an archive never
changes what happens, only how long it takes. The rule: JEP 350, Dynamic CDS Archives.

Java moves a whole archive to a random address, so all of it becomes memory of that Java's own, used or not. Hence one
for each schedule of Spark's: what plans and runs queries is two thirds of Spark, and `resident` has no use for it.

A change of the class path of Kafka or Spark needs a new VERSION; then every tree records its archives again.
"""

import hashlib
import os
import shlex
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bettong.jars import BROKER_JARS, CONNECTOR_JARS, SHARE
from bettong.java import find_java

VERSION = 3
KAFKA, RESIDENT, MICRO_BATCH = "kafka", "spark-resident", "spark-micro-batch"
NAMES = (KAFKA, RESIDENT, MICRO_BATCH)


def archive(name: str) -> Path:
    """Where the archive of one of NAMES lies in this environment."""
    return SHARE / "java" / f"{name}-{VERSION}.jsa"


def missing() -> int:
    """How many of them are not there, or were made by another Java or from other jars: those are of no use."""
    mark = archive(KAFKA).with_name("made_by")
    if not mark.exists() or mark.read_text() != _maker():
        return len(NAMES)
    return sum(not archive(name).exists() for name in NAMES)


def sign() -> None:
    """Writes down what has made the archives, for `missing`."""
    archive(KAFKA).with_name("made_by").write_text(_maker())


def _maker() -> str:
    """A digest of the Java, and of the jars as Java knows them: by their sizes and times."""
    java = find_java(os.environ)
    parts = [str(java.program), java.version] if java is not None else []
    for jar in (*sorted(BROKER_JARS.glob("*.jar")), *sorted(CONNECTOR_JARS.glob("*.jar"))):
        seen = jar.stat()
        parts += [jar.name, str(seen.st_size), str(seen.st_mtime_ns)]
    try:
        parts.append(version("pyspark"))
    except PackageNotFoundError:
        parts.append("")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def reading(name: str) -> tuple[str, ...]:
    """The options of a JVM that starts from an archive; none when there is no archive."""
    path = archive(name)
    return (f"-XX:SharedArchiveFile={path}",) if path.exists() else ()


def recording(name: str) -> dict[str, str]:
    """The environment in which a JVM writes the archive when it ends, of all classes that it has loaded."""
    return {"JDK_JAVA_OPTIONS": shlex.quote(f"-XX:ArchiveClassesAtExit={archive(name)}")}
