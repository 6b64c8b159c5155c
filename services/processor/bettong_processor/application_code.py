"""The application's code: which edition runs, and whether what lies in its files now can take its place.

Nothing here starts or stops anything. Only for one machine: workers read editions from a folder of it.
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

_ANEW = "end with Ctrl-C and start anew (what is kept by --keep: in an empty folder)"

# Of each file that is watched: what changes when it is saved. None for one that is not there.
Marks = dict[str, tuple[int, int, int] | None]


@dataclass(frozen=True, slots=True)
class CodeChange:
    """Code that was found in the files. `refused`: why it cannot be taken up, "" when it can.

    `reference`: for `load`. `is_new`: whether it is other code than what runs, and than what had no place beside it.
    """

    edition: Edition
    marks: Marks
    reference: str
    refused: str = ""
    is_new: bool = True


class ApplicationCode:
    """Looks at the files when it is asked; loads what is new in a thread, for it may take long.

    A refused change is looked at again when a file changes again.
    """

    def __init__(self, settings: ProcessorSettings, folder: Path) -> None:
        """Goes on with the edition that ran before this process, or takes the first.

        Raises ApplicationError, and SettingsError where workers are on other machines.
        """
        if not settings.spark_master.startswith("local"):
            raise SettingsError(
                f"{PREFIX}RELOAD: only on one machine, and {PREFIX}SPARK_MASTER is {settings.spark_master}"
            )
        self._base, self._folder = settings, folder
        folder.mkdir(parents=True, exist_ok=True)
        last, self._seen = ReloadAnswer.read(folder), Marks()  # what lies there now may be newer
        if last is None:
            edition = Edition(settings.application, {})
            edition.take()
            last = ReloadAnswer(number=0, edition=edition.write(folder / "0"))
            last.write(folder)
        self._answer, self._edition = last, Edition.read(Path(last.edition))
        self._settling = self._seen
        # What is loaded by the name of an edition is kept in the process: no two have the same. Not every one that was
        # written was an answer, so the one that runs may have a higher number.
        self._numbers = count(max(last.number, int(Path(last.edition).stem)) + 1)
        self._loading: threading.Thread | None = None
        self._change: CodeChange | None = None
        self._refused: tuple[Edition, str] | None = None
        self._unfit: Edition | None = None

    @property
    def settings(self) -> ProcessorSettings:
        """With the edition that runs as the application."""
        return self.settings_of(self._answer.edition)

    def settings_of(self, edition: str) -> ProcessorSettings:
        """With an edition, by its reference."""
        return self._base.model_copy(update={"application": edition})

    def poll(self) -> CodeChange | None:
        """What is new in the files, once it has been loaded. Ask again and again: it blocks for no load.

        Files that were changed since the last look are given time until the next: a save may take several steps.
        """
        if self._loading is not None:
            if self._loading.is_alive():
                return None
            self._loading = None
            return self._change
        marks = _marks(self._edition, self._seen)
        is_complete, self._settling = marks == self._settling, marks
        if is_complete and marks != self._seen:
            # A daemon: a file that never ends loading holds up nobody's end.
            self._change = None
            self._loading = threading.Thread(target=self._load, args=(marks,), name="new code", daemon=True)
            self._loading.start()
        return None

    def accept(self, change: CodeChange) -> None:
        """It runs. Those that ran stay: what starts just now may have been told to load one of them."""
        restarts = dict(self._answer.restarts)
        for service in _to_restart(_planned(self._answer.edition), _planned(change.reference)):
            restarts[service] = restarts.get(service, 0) + 1
        self._edition = change.edition
        self._say(edition=change.reference, refused="", restarts=restarts)
        self._seen, self._refused, self._unfit = change.marks, None, None

    def refuse(self, change: CodeChange, why: str) -> None:
        """It does not run, and the one before does. `why`: "" when there is nothing to say; the same is said once."""
        if why and self._refused != (change.edition, why):
            self._refused = (change.edition, why)
            self._say(refused=why)
        if why and not change.refused:
            self._unfit = change.edition
        if change.reference:
            Path(change.reference).unlink(missing_ok=True)
        self._seen = change.marks

    def _say(self, **values: object) -> None:
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
        # Files that were not known before are looked at from now on.
        self._change = CodeChange(edition, {**_marks(edition), **marks}, reference, refused, is_new=is_new)


def check_log(before: Plan, now: Plan) -> None:
    """Raises ApplicationError where new code could not read what is in the log by the code before. Pure."""
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
    """What each topic carries, by its stream: fingerprints of schemas, 0 for bytes that an encoder makes."""
    found: dict[str, set[int]] = {}
    for stage in planned.stages:
        for entry in stage.inputs:
            found.setdefault(entry.stream, set()).add(entry.schema.fingerprint)
        for output in stage.outputs:
            is_encoded = output.stage is None and getattr(output.target, "encoder", None) is not None
            found.setdefault(output.target.name, set()).add(0 if is_encoded else output.schema.fingerprint)
    return found


def _to_restart(before: Plan, now: Plan) -> list[str]:
    """The services that read what has changed. Functions count as changed: whether they are, cannot be known."""
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
    """Of an edition's files and of these: a file that could not be imported may be there the next time.

    The application's folder is among them: a new file changes it.
    """
    files = {module.path for module in edition.modules.values()} | (more or {}).keys()
    return {path: _mark(path) for path in files | {str(Path(edition.reference.partition(":")[0]).parent)}}


def _mark(path: str) -> tuple[int, int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
