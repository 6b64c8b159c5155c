"""New code of an application, as a suite sees it: what to say of it, and what to start again."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from bettong.config.service import PREFIX
from bettong.edges.reload_answer import ReloadAnswer
from bettong.local.processes import Command
from bettong.services import PROCESSOR

_APPLICATION = f"{PREFIX}APPLICATION"


@dataclass(frozen=True, slots=True)
class Reload:
    """What became of a change: a line for people, and the services that are to be started again for it."""

    line: str
    restart: tuple[str, ...]


class Reloads:
    """Reads what the processor answers in a folder; without one there is no new code."""

    def __init__(self, folder: Path | None = None, application: str = "") -> None:
        """`application`: what was given to run. What an earlier suite left in the folder is removed."""
        self._folder = folder
        self._file = Path(application.partition(":")[0]).name
        self._before = ReloadAnswer(number=0, edition="")
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def settings(self) -> dict[str, str]:
        """The processor's."""
        return {"reload": str(self._folder)} if self._folder is not None else {}

    def command(self, before: Command) -> Command:
        """What starts a service again: with the code that runs, for what lies in the files may be none that can."""
        answer = ReloadAnswer.read(self._folder) if self._folder is not None else None
        if answer is None or before.name == PROCESSOR.name or _APPLICATION not in before.environment:
            return before
        return replace(before, environment={**before.environment, _APPLICATION: answer.edition})

    def new(self, services: Collection[str]) -> Reload | None:
        """What has become of the newest change, once. `services`: those that there are. Never blocks."""
        answer = ReloadAnswer.read(self._folder) if self._folder is not None else None
        if answer is None or answer.number <= self._before.number:
            return None
        before, self._before = self._before, answer
        restart = [
            name
            for name, count in answer.restarts.items()
            if count > before.restarts.get(name, 0) and name in services
        ]
        if answer.refused:
            line = f"{self._file} has changed, the code of before runs on until what is saved can run: {answer.refused}"
        else:
            also = f"; started again for it: {', '.join(restart)}" if restart else ""
            line = f"{self._file} has changed, the new code runs{also}"
        return Reload(line, tuple(restart))
