"""The Containerfile as its stages, for rules that need no engine."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dockerfile_parse import DockerfileParser

ROOT = Path(__file__).parents[2]
PATH = ROOT / "deploy" / "images" / "Containerfile"
SERVICES = sorted(path.parent.name for path in ROOT.glob("services/*/pyproject.toml"))


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction with its value, lines joined."""

    word: str
    value: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage by what it is made from; `own` are its own steps, `steps` those of all that it grew from too."""

    origin: str
    own: tuple[Step, ...]
    steps: tuple[Step, ...]

    def last(self, word: str) -> str:
        """The value of an instruction that counts; "" when there is none."""
        return next((step.value for step in reversed(self.steps) if step.word == word), "")

    @property
    def labels(self) -> dict[str, str]:
        """The labels, as they are written."""
        pairs = [pair for step in self.steps if step.word == "LABEL" for pair in _PAIR.findall(step.value)]
        return {name: value.strip('"') for name, value in pairs}


_PAIR = re.compile(r'([\w.-]+)=("[^"]*"|\S+)')
_FROM = re.compile(r"(\S+) AS (\S+)")


def steps(text: str) -> tuple[Step, ...]:
    """The instructions of a Containerfile in their order, without comments."""
    found = DockerfileParser(fileobj=io.BytesIO(text.encode())).structure
    return tuple(
        Step(each["instruction"], each["value"]) for each in found if each["instruction"] != "COMMENT"
    )


def stages(text: str) -> Mapping[str, Stage]:
    """The stages by name. Raises ValueError for a FROM without a name: nothing could be built from it."""
    made: dict[str, Stage] = {}
    lists: dict[str, tuple[str, list[Step]]] = {}
    name = ""
    for step in steps(text):
        if step.word == "FROM":
            if (named := _FROM.fullmatch(step.value)) is None:
                raise ValueError(f"FROM {step.value}: give the stage a name")
            origin, name = named.groups()
            lists[name] = (origin, [])
        elif name:
            lists[name][1].append(step)
    for name, (origin, own) in lists.items():
        before = made[origin].steps if origin in made else ()
        made[name] = Stage(origin, tuple(own), (*before, *own))
    return made
