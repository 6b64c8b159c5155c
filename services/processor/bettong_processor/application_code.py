"""The application's code: which edition runs, and whether the code in its files now can replace it.

An edition is a copy of the files at one time. Nothing here starts or stops a schedule. Only for one machine: workers
read editions from a folder on it.
"""

import threading
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from bettong.application.plan import Plan, plan
from bettong.config.processor import ProcessorSettings
from bettong.config.service import PREFIX
from bettong.edges.application_file import Edition, load
from bettong.edges.reload_answer import ReloadAnswer
from bettong.errors import ApplicationError, BettongError, SettingsError
from bettong.inspection.flow_graph import flow_graph
from bettong.services import CONSOLE, RECEIVER, SENDER
from bettong.user_errors import ANY_ERROR, reason_of
from bettong_processor.programs import programs
from bettong_processor.spark_master import is_on_one_machine

_ANEW = "end with Ctrl-C and start anew (what is kept by --keep: in an empty folder)"

# For each watched file: modification time, size and inode; None if it does not exist.
Marks = dict[str, tuple[int, int, int] | None]


@dataclass(frozen=True, slots=True)
class CodeChange:
    """Code that was found in the files. `refused`: why it cannot run, "" when it can.

    `reference`: for `load`. `is_new`: whether it differs from the code that runs, and from the last to fail.
    """

    edition: Edition
    marks: Marks
    reference: str
    refused: str = ""
    is_new: bool = True


class ApplicationCode:
    """Checks the files when it is polled; loads new code in a thread, for it may take long.

    After a refused change, the code is loaded again when a file changes again.
    """

    def __init__(self, settings: ProcessorSettings, folder: Path) -> None:
        """Continues with the edition that ran before this process; without one, makes the first from the files.

        Raises ApplicationError, and SettingsError where workers are on other machines.
        """
        if not is_on_one_machine(settings.spark_master):
            raise SettingsError(
                f"{PREFIX}RELOAD: only on one machine, and {PREFIX}SPARK_MASTER is {settings.spark_master}"
            )
        self._base, self._folder = settings, folder
        folder.mkdir(parents=True, exist_ok=True)
        last, self._seen = ReloadAnswer.read(folder), Marks()  # the files may be newer than the last edition
        if last is None:
            edition = Edition(settings.application, {})
            edition.take()
            last = ReloadAnswer(number=0, edition=edition.write(folder / "0"))
            last.write(folder)
        self._answer, self._edition = last, Edition.read(Path(last.edition))
        self._settling = self._seen
        # A process caches what it loads by an edition's name, so names are never reused. Not every edition became an
        # answer, so the edition that runs may have a higher number than the answer.
        self._numbers = count(max(last.number, int(Path(last.edition).stem)) + 1)
        self._loading: threading.Thread | None = None
        self._change: CodeChange | None = None
        self._refused: tuple[Edition, str] | None = None
        self._unfit: Edition | None = None

    @property
    def settings(self) -> ProcessorSettings:
        """The settings, with the edition that runs as the application."""
        return self.settings_of(self._answer.edition)

    def settings_of(self, edition: str) -> ProcessorSettings:
        """The settings, with this edition (a reference) as the application."""
        return self._base.model_copy(update={"application": edition})

    def poll(self) -> CodeChange | None:
        """The new code in the files, once it has been loaded. To be polled: it does not block for a load.

        A change is loaded only once two polls have found the same files: a save may take several steps.
        """
        if self._loading is not None:
            if self._loading.is_alive():
                return None
            self._loading = None
            return self._change
        marks = _marks(self._edition, self._seen)
        is_complete, self._settling = marks == self._settling, marks
        if is_complete and marks != self._seen:
            # A daemon thread: a file that never finishes loading does not keep the process from ending.
            self._change = None
            self._loading = threading.Thread(target=self._load, args=(marks,), name="new code", daemon=True)
            self._loading.start()
        return None

    def accept(self, change: CodeChange) -> None:
        """Reports that the change runs. Files of older editions stay: a process that is starting may load one."""
        restarts = dict(self._answer.restarts)
        for service in _to_restart(_planned(self._answer.edition), _planned(change.reference)):
            restarts[service] = restarts.get(service, 0) + 1
        self._edition = change.edition
        self._write_answer(edition=change.reference, refused="", restarts=restarts)
        self._seen, self._refused, self._unfit = change.marks, None, None

    def refuse(self, change: CodeChange, why: str) -> None:
        """Reports that the change is refused and the old code runs on. `why`: "" and repeats are not reported."""
        if why and self._refused != (change.edition, why):
            self._refused = (change.edition, why)
            self._write_answer(refused=why)
        if why and not change.refused:
            self._unfit = change.edition
        if change.reference:
            Path(change.reference).unlink(missing_ok=True)
        self._seen = change.marks

    def _write_answer(self, **values: object) -> None:
        self._answer = self._answer.model_copy(update={"number": self._answer.number + 1, **values})
        self._answer.write(self._folder)

    def _load(self, marks: Marks) -> None:
        edition, reference, refused = Edition(self._base.application, {}), "", ""
        try:
            edition.take(self._edition)
            if edition != self._edition:
                reference = edition.write(self._folder / str(next(self._numbers)))
                check_log(_planned(self._answer.edition), _planned(reference))
                programs(self.settings_of(reference))
        except BettongError as error:
            refused = str(error)
        except ANY_ERROR as error:  # SystemExit, too
            refused = reason_of(error)
        is_new = edition not in (self._edition, self._unfit)
        # Modules that the new code imports for the first time are watched from now on.
        self._change = CodeChange(edition, {**_marks(edition), **marks}, reference, refused, is_new=is_new)


def check_log(before: Plan, now: Plan) -> None:
    """Raises ApplicationError where new code could not read records that the old code has written. Pure."""
    if before.application != now.application:
        raise ApplicationError(
            f"its name is {now.application!r} now, and the log is that of {before.application!r}: {_ANEW}"
        )
    carried, carries = _shapes(before), _shapes(now)
    for stream in sorted(carried.keys() & carries.keys()):
        if not carried[stream] <= carries[stream]:
            raise ApplicationError(
                f"messages of {stream!r} have other fields now, and its log holds those of before: give the changed"
                f" stream another name, or {_ANEW}"
            )


def _shapes(planned: Plan) -> dict[str, set[int]]:
    """The schema fingerprints in each stream's topic; 0 for bytes that an encoder makes."""
    found: dict[str, set[int]] = {}
    for stage in planned.stages:
        for entry in stage.inputs:
            found.setdefault(entry.stream, set()).add(entry.schema.fingerprint)
        for output in stage.outputs:
            is_encoded = output.stage is None and getattr(output.target, "encoder", None) is not None
            found.setdefault(output.target.name, set()).add(0 if is_encoded else output.schema.fingerprint)
    return found


def _to_restart(before: Plan, now: Plan) -> list[str]:
    """The services that read a changed part of the plan. Functions count as changed, as they cannot be compared."""
    return [
        service
        for service, described in (
            (SENDER.name, _as_senders_see),
            (RECEIVER.name, _as_receivers_see),
            (CONSOLE, flow_graph),
        )
        if described(before) != described(now)
    ]


def _as_senders_see(planned: Plan) -> list[object]:
    stages = {source.name: planned.stage_of(source.name) for source in planned.sources}
    return [
        (
            *(source.name, source.schema.fingerprint, source.key, source.decoder, source.on_error),
            *(source.from_, source.event_time),
            *(stages[source.name].name, stages[source.name].needs_time),
            *(stages[source.name].judges_lateness, stages[source.name].needs_each_watermark),
        )
        for source in planned.sources
    ]


def _as_receivers_see(planned: Plan) -> list[object]:
    shapes = _shapes(planned)
    return [(sink.name, sorted(shapes[sink.name]), sink.on_error, sink.to) for sink in planned.sinks]


def _planned(reference: str) -> Plan:
    return plan(load(reference))


def _marks(edition: Edition, more: Marks | None = None) -> Marks:
    """The marks of an edition's files and of those in `more`: a file that could not be imported may appear later.

    The application's folder is included, for a new file changes it.
    """
    files = {module.path for module in edition.modules.values()} | (more or {}).keys()
    return {path: _mark(path) for path in files | {str(Path(edition.reference.partition(":")[0]).parent)}}


def _mark(path: str) -> tuple[int, int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
