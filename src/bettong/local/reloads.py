"""Reloads of an application's code, as the processor reports them: what to tell the user, and what to restart."""

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
    """The outcome of a code change: a line for people, and the services to restart for it."""

    line: str
    restart: tuple[str, ...]


class Reloads:
    """Reads the processor's answers from a folder; without a folder, code is not reloaded."""

    def __init__(self, folder: Path | None = None, application: str = "") -> None:
        """`application`: the option that names its file. Removes the answers of an earlier suite from the folder."""
        self._folder = folder
        self._file = Path(application.partition(":")[0]).name
        self._before = ReloadAnswer(number=0, edition="")
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def settings(self) -> dict[str, str]:
        """Additional settings of the processor."""
        return {"reload": str(self._folder)} if self._folder is not None else {}

    def command(self, before: Command) -> Command:
        """The command that restarts a service: with the code that runs now, for the files may hold code that cannot."""
        answer = ReloadAnswer.read(self._folder) if self._folder is not None else None
        if answer is None or before.name == PROCESSOR.name or _APPLICATION not in before.environment:
            return before
        return replace(before, environment={**before.environment, _APPLICATION: answer.edition})

    def new(self, services: Collection[str]) -> Reload | None:
        """The outcome of the newest change, once; else None. `services`: those of the suite. Never blocks."""
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
            line = (
                f"{self._file} has changed, the old code runs on until the new code can run: {answer.refused}"
            )
        else:
            also = f"; started again for it: {', '.join(restart)}" if restart else ""
            line = f"{self._file} has changed, the new code runs{also}"
        return Reload(line, tuple(restart))
