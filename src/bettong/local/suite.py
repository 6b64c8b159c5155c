"""Runs one application on this machine: starts Kafka, Redis and the services, and restarts those that die."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from bettong.application.plan import plan
from bettong.edges.application_file import load
from bettong.errors import BettongError, LocalError
from bettong.local import services
from bettong.local.broker import KafkaBroker
from bettong.local.checks import check_options, check_start, final_status
from bettong.local.directories import Directories
from bettong.local.ending import end_all
from bettong.local.metrics_addresses import SETTING, metrics_addresses
from bettong.local.options import SuiteOptions
from bettong.local.processes import Process
from bettong.local.record import ProcessRecord, ServiceRecord, SuiteRecord, forget
from bettong.local.redis_server import RedisServer
from bettong.local.reloads import Reloads
from bettong.local.secrets import Secrets
from bettong.local.server import Server, poll_s
from bettong.local.settings import SERVING, further_senders, settings_of
from bettong.local.supervision import FINAL_STATUSES, FORGET_S, GiveUp, decide
from bettong.services import CONSOLE, PROCESSOR, SENDER, SERVICES, ServiceEntry

_POLL_S = 0.05  # between two polls of the processes


class Suite:
    """A context manager: entering starts everything and waits until all answer, leaving stops everything.

    A process that dies is restarted; `say` receives a line about it, in the suite's thread. One that dies too often, or
    of an error that no restart mends, stays down (`given_up`). All end with this process, however it ends.
    """

    def __init__(self, options: SuiteOptions, *, say: Callable[[str], None] = lambda _: None) -> None:
        self._options = options
        self._listener = say
        self._stopping = threading.Event()
        self._hurry = threading.Event()
        self._interrupt: KeyboardInterrupt | None = None
        self._started = threading.Event()
        # Awaited instead of the thread's join: Python 3.11 considers a thread dead when its join is interrupted.
        self._ended = threading.Event()
        self._failure: BettongError | None = None
        self._application = ""
        self._record: SuiteRecord | None = None
        self._servers: dict[str, Server] = {}
        self._metrics: dict[str, str] = {}
        self._deaths_s: dict[str, list[float]] = {}
        self._explained: dict[str, int] = {}  # how many of the first deaths: see `decide`
        self._progress: dict[str, int] = {}
        self._restart_due_s: dict[str, float] = {}
        self._faults: dict[str, str] = {}
        self._given_up: dict[str, str] = {}
        self._reloads = Reloads()
        self._restarting: set[str] = set()  # asked to end, to be started again
        self._record_is_written = True
        # Children die with the thread that started them (see `processes`), so one thread starts, watches and ends them.
        self._thread = threading.Thread(target=self._run_in_thread, name="suite", daemon=True)

    @property
    def record(self) -> SuiteRecord:
        """The current addresses, folders and processes. Raises LocalError before the start."""
        if self._record is None:
            raise LocalError("the suite is not started")
        return self._record

    @property
    def given_up(self) -> dict[str, str]:
        """The processes that stay down, and why; kept after the stop. Without the console: nothing depends on it."""
        return {name: why for name, why in self._given_up.items() if name != CONSOLE}

    def start(self) -> None:
        """Starts everything and blocks until all answer. After an error no process and no temporary file remains."""
        try:
            # The user's code runs in this thread: an interrupt, which reaches the main thread alone, ends it.
            self._application = plan(load(self._options.application)).application
            self._thread.start()
            self._started.wait()
            self.check()
        except BaseException:
            self.stop()
            raise

    def check(self) -> None:
        """Raises the error that ended the suite, if there was one."""
        if self._failure is not None:
            raise self._failure

    def wait(self, seconds: float) -> None:
        """Blocks for `seconds`; when the suite fails meanwhile, raises its error at once."""
        self._ended.wait(seconds)
        self.check()

    def wait_with_all(self, seconds: float) -> None:
        """As `wait`, and raises LocalError as well when a process was given up."""
        self.wait(seconds)
        for name, why in self.given_up.items():
            raise LocalError(f"{name} stopped for good: {why}")

    def stop(self) -> None:
        """Stops everything within about a minute; a Ctrl-C meanwhile kills what still runs. Never raises."""
        self._stopping.set()
        while self._thread.ident is not None and not self._ended.is_set():
            try:
                self._ended.wait()
            except KeyboardInterrupt as interrupt:
                self._interrupt = interrupt
                self._hurry.set()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if kind is None and self._interrupt is not None:
            raise self._interrupt  # the caller must not go on as if Ctrl-C had not been pressed

    # The methods below run in the suite's thread.

    def _run_in_thread(self) -> None:
        try:
            self._run()
        except BettongError as error:
            self._failure = error
        except OSError as error:  # a folder that cannot be written, a full disk
            self._failure = LocalError(f"the suite failed: {error}; is the disk full, or not writable?")
        except BaseException as error:
            self._failure = LocalError(f"the suite failed: {type(error).__name__}: {error}")
            raise
        finally:
            self._started.set()
            self._ended.set()

    def _run(self) -> None:
        check_options(self._options)
        directories = Directories(self._options.keep)
        try:
            directories.reserve(self._application)
            self._make_servers(self._application, directories)
            self._write_record()  # before anything runs, so that `bettong down` ends a suite that starts
            self._launch_all()
            self._started.set()
            while not self._stopping.wait(_POLL_S):
                self._check_processes()
        finally:
            end_all(self._servers, kept=directories.kept, hurry=self._hurry)
            if self._record is not None:
                for folder in self._folders(self._record):
                    forget(folder)
            directories.remove()

    def _make_servers(self, application: str, directories: Directories) -> None:
        root, logs = directories.root, directories.logs
        logs.mkdir(exist_ok=True)
        scratch = root / "scratch"
        scratch.mkdir(exist_ok=True)
        own = Secrets.of(root)
        environment = self._options.environment.get("kafka", {})
        kafka = KafkaBroker(root / "kafka", password_file=own.kafka, environment=environment)
        redis = RedisServer(root / "redis", appendonly=directories.kept, password_file=own.redis)
        kafka.stopping = redis.stopping = self._stopping
        measured = services.measured(self._options.senders, self._options.standby)
        self._metrics = metrics_addresses(self._options.settings, os.environ, measured)
        settings = settings_of(self._options, kafka.connection, redis.connection, own, directories)
        senders = further_senders(self._options, settings)
        make = partial(self._service, logs=logs, application=application, scratch=scratch)
        if self._options.reload:
            self._reloads = Reloads(scratch / "editions", self._options.application)
        self._servers = {
            "redis": redis,
            PROCESSOR.name: make(PROCESSOR, settings | self._reloads.settings),
            **self._standby(make, settings),
            **self._console(settings, directories),
            **{each.name: make(each, settings) for each in SERVICES.values() if each is not PROCESSOR},
            **{name: make(SENDER, own, name=name) for name, own in senders.items()},
            "kafka": kafka,
        }
        results = settings.get("receiver_dir")
        self._record = SuiteRecord(
            application=settings["application"],
            name=application,
            schedule=settings["schedule"],
            partitions=self._options.partitions,
            compiled=self._options.compiled,
            directory=root,
            results=Path(results) if results is not None else None,
            kafka=kafka.bootstrap,
            kafka_user=kafka.connection.user,
            kafka_password_file=own.kafka,
            redis=redis.url,
            redis_password_file=own.redis,
            state_key_file=own.state_key,
            snapshots=settings["snapshots"],
            addresses={
                **{each.name: settings[each.listen_setting] for each in SERVING},
                **{name: own[SENDER.listen_setting] for name, own in senders.items()},
            },
            console=services.console_url(settings) if CONSOLE in self._servers else None,
            metrics=self._metrics,
            ready=False,
            owner=ProcessRecord.own(),
            services={},
        )

    def _standby(self, make: Callable[..., Server], settings: dict[str, str]) -> dict[str, Server]:
        """The second processor, if one is requested, with its own checkpoint: two must not write the same one."""
        if not self._options.standby:
            return {}
        own = {**settings, "checkpoint": f"{settings['checkpoint']}-2"}
        return {services.SECOND: make(PROCESSOR, own, name=services.SECOND)}

    def _console(self, settings: dict[str, str], directories: Directories) -> dict[str, Server]:
        """The console, if it is requested and installed."""
        if not self._options.console or not services.has_console():
            return {}
        environment = self._options.environment.get(CONSOLE, {})
        return {CONSOLE: services.console(settings, directories.logs, environment, directories.root)}

    def _service(
        self,
        entry: ServiceEntry,
        settings: Mapping[str, str],
        *,
        logs: Path,
        application: str,
        scratch: Path,
        name: str | None = None,
    ) -> Server:
        folders = services.spark_folders(scratch) if entry is PROCESSOR else {}
        given = self._options.environment
        environment = {**folders, **given.get(entry.name, {}), **given.get(name or entry.name, {})}
        if (address := self._metrics.get(name or entry.name)) is not None:
            settings = {**settings, SETTING: address}
        return services.service(entry, settings, logs, environment, application=application, name=name)

    def _launch_all(self) -> None:
        """Launches all in parallel, the slow ones first, and waits until each answers.

        Services in LATER start after all others answer.
        """
        first = {name: server for name, server in self._servers.items() if name not in services.LATER}
        for name, server in first.items():
            server.launch()
            if name == "redis":
                server.wait()
        self._update_record(ready=False)
        waiting, began_s = dict(first), time.monotonic()
        deadlines = {name: began_s + server.start_s_max for name, server in waiting.items()}
        # A process that dies after it has answered is restarted later, by `_check_processes`.
        while waiting and not self._stopping.wait(poll_s(time.monotonic() - began_s)):
            for name, server in list(waiting.items()):
                check_start(name, server)
                if server.answers():
                    del waiting[name]
                elif time.monotonic() > deadlines[name]:
                    raise server.no_answer_error()
        self._update_record(ready=not waiting)
        self._restart_due_s = dict.fromkeys(self._servers.keys() - first, time.monotonic())

    def _check_processes(self) -> None:
        """Detects deaths, and restarts the processes whose restart is due."""
        if not self._record_is_written:
            self._write_record()
        if (reload := self._reloads.new(self._servers)) is not None:
            self._report(reload.line)
            self._restart_services(reload.restart)
        for name, server in self._servers.items():
            if server.process is not None:
                server.process.rotate_log()
                if name not in self._restart_due_s and name not in self._given_up:
                    self._check_process(name, server, server.process)
            if name in self._restart_due_s and time.monotonic() >= self._restart_due_s[name]:
                del self._restart_due_s[name]
                self._restart(name, server)

    def _restart_services(self, services: Iterable[str]) -> None:
        """Asks all processes of these services to end; `_check_process` then restarts them."""
        for name, server in self._servers.items():
            if server.runs() and any(name.startswith(service) for service in services):
                self._restarting.add(name)
                server.terminate()

    def _check_process(self, name: str, server: Server, process: Process) -> None:
        if process.ending is None:
            return
        if name in self._restarting:
            self._restarting.remove(name)
            self._restart_due_s[name] = time.monotonic()
        elif process.ending.status in FINAL_STATUSES:
            self._give_up(name, server.describe_end())
        else:
            last = " ".join(process.tail(1)) or "nothing"
            self._schedule_restart(name, server, f"died ({process.ending}; its last line: {last})")

    def _restart(self, name: str, server: Server) -> None:
        try:
            server.command = self._reloads.command(server.command)
            server.launch()
        except (BettongError, OSError) as error:  # no process was started: counts as a death
            self._schedule_restart(name, server, f"cannot be started ({error})")
        else:
            self._update_record(ready=True)

    def _report(self, line: str) -> None:
        """A failed write, as on a full disk, does not end the suite."""
        with suppress(OSError):
            self._listener(line)

    def _schedule_restart(self, name: str, server: Server, what: str) -> None:
        """Counts a death, and either schedules a restart or gives the process up."""
        deaths = self._deaths_s.setdefault(name, [])
        deaths.append(time.monotonic())
        self._update_record(ready=True)
        rule = self._options.restarts
        if (progress := server.progress()) != self._progress.get(name):
            self._progress[name], self._explained[name] = progress, len(deaths) - 1
        decision = decide(
            deaths, explained=self._explained[name], deaths_max=rule.deaths_max, wait_s_max=rule.wait_s_max
        )
        if isinstance(decision, GiveUp):
            self._give_up(
                name,
                f"it {what}, and died {decision.deaths} times with less than {FORGET_S:g} s in between:"
                f" {server.describe_end()}",
            )
            return
        self._restart_due_s[name] = deaths[-1] + decision.wait_s
        self._report(
            f"{name} {what} and is started again in {decision.wait_s:g} s:"
            f" {services.MEANING[name]}; its log: {server.command.log}"
        )

    def _give_up(self, name: str, why: str) -> None:
        """Leaves the process down. The others run on: Kafka still keeps messages, and `status` shows the reason."""
        self._given_up[name] = why
        self._report(
            f"{name} stopped for good, everything else runs on; fix the cause, then restart the suite (if its data is"
            f" kept: `bettong down` and `up`): {why}"
        )
        self._update_record(ready=True)

    def _update_record(self, *, ready: bool) -> None:
        self._record = self.record.model_copy(
            update={
                "ready": ready,
                "services": {
                    name: ServiceRecord(
                        pid=server.process.pid,
                        started_s=server.process.started_s,
                        start_mark=server.process.start_mark,
                        log=server.command.log,
                        restarts=len(self._deaths_s.get(name, [])),
                        fault=self._fault_of(name, server.process),
                        final_status=final_status(server) if name in self._given_up else None,
                    )
                    for name, server in self._servers.items()
                    if server.process is not None
                },
            }
        )
        self._write_record()

    def _fault_of(self, name: str, process: Process) -> str:
        """How the process ended; while it runs, how its predecessor ended ("" for the first)."""
        if process.ending is not None:
            self._faults[name] = f"{process.ending}: {' '.join(process.tail(1)) or 'it printed nothing'}"
        return self._faults.get(name, "")

    def _write_record(self) -> None:
        """Writes the record. On a full disk the processes run on, and the write is retried until there is room."""
        try:
            for folder in self._folders(self.record):
                self.record.write(folder)
        except OSError as error:
            if not self.record.ready:
                raise
            if self._record_is_written:
                self._report(f"suite.json cannot be written, other commands see an old one: {error}")
            self._record_is_written = False
        else:
            self._record_is_written = True

    def _folders(self, record: SuiteRecord) -> list[Path]:
        """The folders in which the record is written."""
        announce = self._options.announce
        return [record.directory, *([announce] if announce is not None else [])]
