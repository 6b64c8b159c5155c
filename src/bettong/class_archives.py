"""Class-data archives: the classes that a JVM loads at its start, parsed and verified once, at setup.

`bettong_processor.recording`, which `bettong setup` and `make setup` call, records them. Java uses an archive only if
the same Java recorded it from the same jars; otherwise it loads the classes as usual, with a warning. So an archive
changes only how long a start takes. The rule: JEP 350, Dynamic CDS Archives.

Java relocates an archive as a whole to a random address, so all of it becomes private memory, used or not. Hence each
schedule has its own archive: two thirds of Spark plan and run queries, which `resident` does not need. So has an
executor of `local-cluster[...]`, whose class path Spark orders in its own way.

A change of Kafka's or Spark's class path needs a new VERSION; then every tree records its archives again.
"""

import hashlib
import os
import shlex
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bettong.jars import BROKER_JARS, CONNECTOR_JARS, SHARE
from bettong.java import find_java

VERSION = 3
KAFKA, RESIDENT, MICRO_BATCH, EXECUTOR = "kafka", "spark-resident", "spark-micro-batch", "spark-executor"
NAMES = (KAFKA, RESIDENT, MICRO_BATCH, EXECUTOR)


def archive(name: str) -> Path:
    """The path of an archive, one of NAMES, in this environment."""
    return SHARE / "java" / f"{name}-{VERSION}.jsa"


def missing() -> int:
    """How many archives do not exist, or are useless because another Java or other jars made them."""
    mark = archive(KAFKA).with_name("made_by")
    if not mark.exists() or mark.read_text() != _maker():
        return len(NAMES)
    return sum(not archive(name).exists() for name in NAMES)


def sign() -> None:
    """Records which Java and jars made the archives, for `missing`."""
    archive(KAFKA).with_name("made_by").write_text(_maker())


def _maker() -> str:
    """A digest of the Java, and of the jars as Java identifies them: by size and modification time."""
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
    """The options with which a JVM starts from an archive; empty when there is no archive."""
    path = archive(name)
    return (f"-XX:SharedArchiveFile={path}",) if path.exists() else ()


def recording(name: str) -> dict[str, str]:
    """The environment in which a JVM, when it ends, archives all classes that it has loaded."""
    return {"JDK_JAVA_OPTIONS": shlex.quote(f"-XX:ArchiveClassesAtExit={archive(name)}")}
