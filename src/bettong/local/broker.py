"""A real Kafka broker for one machine: one node that is broker and controller (KRaft)."""

import base64
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from bettong.class_archives import KAFKA, reading
from bettong.config.connection_settings import KafkaConnection, KafkaMechanism, KafkaSecurity
from bettong.errors import LocalError
from bettong.jars import BROKER_JARS
from bettong.java import java_program
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.probes import kafka_answers
from bettong.local.processes import Command, Process
from bettong.local.secrets import write_private
from bettong.local.server import Server

# About 4 s alone; a busy machine, or a log to recover after a crash, takes many times as long.
_START_S_MAX = 120.0
_FORMAT_S_MAX = 60.0
_MEBIBYTE = 1024 * 1024

# Little memory and a quick start: the storage tool runs for a second.
_TOOL_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx96m")
_BROKER_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")
# The file with feature versions that Kafka's tool writes into a new storage, beside the ids of cluster and folder.
_CHECKPOINT = "bootstrap.checkpoint"
_NO_TRACES = "-XX:-UsePerfData"  # else a killed JVM leaves a file in the machine's temporary folder

_NODE = "1"
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": _NODE,
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "CLIENTS",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    # Topics have their own limits; this is the largest that Bettong's settings allow: three frames and some room.
    "message.max.bytes": str(800 * _MEBIBYTE),
    "socket.request.max.bytes": str(832 * _MEBIBYTE),
    # One node, so one copy; one partition, so that the first group or transaction does not wait for fifty.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # State is a fold of the log, so a local suite retains all of it.
    "log.retention.ms": "-1",
    "log.retention.bytes": "-1",
    # The cleaner's table is 128 MiB by default, half of our heap.
    "log.cleaner.dedupe.buffer.size": str(4 * _MEBIBYTE),
    "log.cleaner.threads": "1",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.recovery.threads.per.data.dir": "2",
    # The kernel chooses. With the default, 100 KiB, a large frame's record takes several round trips.
    "socket.send.buffer.bytes": "-1",
    "socket.receive.buffer.bytes": "-1",
    # After a crash the controller considers the old broker alive for this long, and the new one waits: it tries to
    # register 0.1, 0.3, 0.7 and 1.5 s after its start.
    "broker.session.timeout.ms": "1400",
    "broker.heartbeat.interval.ms": "350",
    # By default the controller writes an empty record twice a second, from which other nodes see their lag: a third
    # of an idle broker's CPU.
    "metadata.max.idle.interval.ms": "0",
}

# The broker's log, at most three files of 20 MB.
_LOGGING = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {pattern}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %m (%c{{1}})%n
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
appender.screen.type = Console
appender.screen.name = screen
appender.screen.layout.type = PatternLayout
appender.screen.layout.pattern = %p %m%n%throwable{{short.message}}%n
appender.screen.filter.threshold.type = ThresholdFilter
appender.screen.filter.threshold.level = error
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
rootLogger.appenderRef.screen.ref = screen
"""
# The only user of a broker with a password: clients, the broker itself and its controller authenticate as it.
_USER = "bettong"
_LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="{0}" password="{1}" user_{0}="{1}";'
)


class KafkaBroker(Server):
    """A broker with its data in `directory`, listening on the loopback interface only.

    The ports stay the same when it is stopped and started; a new KafkaBroker over the same directory has other ports
    and the same data. `jars`: the folder of Kafka's jars, by default those of this environment. The broker logs to
    `directory/broker.log`, its standard output and errors go to `directory/terminal.log`. `password_file`: every
    listener requires the password in it; without one, every process on this machine may connect. `environment`:
    additional variables of its process.
    """

    def __init__(
        self,
        directory: Path,
        *,
        heap_mb: int = 512,
        jars: Path | None = None,
        password_file: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self._password_file = password_file
        self.port, self._controller_port = free_ports(2)
        self._jars = jars if jars is not None else BROKER_JARS
        self._java = java_program(os.environ)
        directories = (
            f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}",
            f"-Djava.io.tmpdir={directory}",  # its native libraries, which a killed JVM leaves behind
        )
        options = (*_BROKER_OPTIONS, *directories, f"-Xms{heap_mb // 4}m", f"-Xmx{heap_mb}m")
        super().__init__(
            Command(
                "kafka",
                self._java_call(*options, main="kafka.Kafka"),
                directory / "terminal.log",
                environment=environment or {},
            ),
            answers=lambda: kafka_answers(self.port, self.connection.user, self.connection.password()),
            start_s_max=_START_S_MAX,
        )

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def connection(self) -> KafkaConnection:
        """Where clients connect, and how they authenticate."""
        if self._password_file is None:
            return KafkaConnection(self.bootstrap)
        return KafkaConnection(
            self.bootstrap,
            KafkaSecurity.SASL_PLAINTEXT,
            mechanism=KafkaMechanism.PLAIN,
            user=_USER,
            password_file=self._password_file,
        )

    def prepare(self) -> None:
        """Writes the settings, and formats the storage the first time.

        Copies the file that `keep_checkpoint` has kept; without one, Kafka's tool runs for about a second.
        """
        if not any(self._jars.glob("kafka-server-*.jar")):
            raise LocalError(
                f"Kafka's jars are not in {self._jars}: run `bettong setup` (in a source tree `make setup`)"
            )
        if "," in str(self._data):
            raise LocalError(
                f"Kafka cannot keep its data in {self.directory}, whose path has a comma: it reads a list of folders"
                " there; choose a folder without one (--dir DIR; of `bettong run`: --keep DIR, or TMPDIR)"
            )
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = {
            **_SETTINGS,
            **self.addresses(),
            **self._authentication_settings(),
            "log.dirs": str(self._data),
        }
        lines = "".join(f"{name}={property_text(value)}\n" for name, value in settings.items())
        write_private(self._settings_file, lines.encode("ascii"))
        log = property_text(str(self.directory / "broker.log"))
        # In a pattern a percent sign begins a conversion.
        logging = _LOGGING.format(log=log, pattern=log.replace("%", "%%"))
        (self.directory / "log4j2.properties").write_text(logging, "ascii")
        if not self._format_mark.exists():
            kept = self._jars / _CHECKPOINT
            if kept.exists() and not self.format_arguments():
                self._copy_format(kept)
            else:
                self._format()

    def format_arguments(self) -> tuple[str, ...]:
        """Additional arguments of Kafka's storage tool, for what a new storage is to hold."""
        return ()

    def keep_checkpoint(self) -> None:
        """Keeps the tool's checkpoint file beside the jars: it is the same for every storage of this Kafka version."""
        shutil.copy(self._data / _CHECKPOINT, self._jars / _CHECKPOINT)

    def _copy_format(self, kept: Path) -> None:
        self._data.mkdir(exist_ok=True)
        shutil.copy(kept, self._data / _CHECKPOINT)
        names = {"version": 1, "cluster.id": _new_id(), "node.id": _NODE, "directory.id": _new_id()}
        fresh = self._format_mark.with_suffix(".new")  # whole or not at all, also on a full disk
        fresh.write_text("".join(f"{name}={value}\n" for name, value in names.items()))
        fresh.replace(self._format_mark)

    def _format(self) -> None:
        tool = self._java_call(
            *_TOOL_OPTIONS,
            main="kafka.tools.StorageTool",
            arguments=("format", "-t", _new_id(), *self.format_arguments(), "-c"),
        )
        formatting = Process(Command("kafka's storage tool", tool, self.command.log))
        ending = formatting.wait(_FORMAT_S_MAX, self.stopping)
        if ending is None or ending.status != 0:
            end = formatting.describe_end()
            formatting.kill()
            if self.stopping.is_set():
                raise self.not_wanted_error()
            raise LocalError(f"kafka's storage cannot be formatted within {_FORMAT_S_MAX:g} s: {end}")

    def _java_call(self, *options: str, main: str, arguments: tuple[str, ...] = ()) -> tuple[str, ...]:
        return (
            self._java,
            _NO_TRACES,
            *reading(KAFKA),
            *options,
            "-cp",
            f"{self._jars}/*",
            main,
            *arguments,
            str(self._settings_file),
        )

    def _authentication_settings(self) -> dict[str, str]:
        """Settings that make the broker require SASL/PLAIN, on the controller's listener too."""
        if self._password_file is None:
            return {}
        login = _LOGIN.format(_USER, self.connection.password())
        return {
            "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": login,
            "listener.name.controller.plain.sasl.jaas.config": login,
        }

    def addresses(self) -> dict[str, str]:
        """The broker's settings for its listeners."""
        clients = f"CLIENTS://{self.bootstrap}"
        return {
            "listeners": f"{clients},CONTROLLER://{LOOPBACK}:{self._controller_port}",
            "advertised.listeners": clients,
            "controller.quorum.voters": f"{_NODE}@{LOOPBACK}:{self._controller_port}",
        }

    @property
    def _settings_file(self) -> Path:
        return self.directory / "server.properties"

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    @property
    def _format_mark(self) -> Path:
        """Its presence means that the storage is formatted."""
        return self._data / "meta.properties"


def property_text(value: str) -> str:
    """A value as Java's `Properties.load` reads it: in ASCII, other characters as escapes of UTF-16, as it wants them.

    Source: https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/Properties.html
    """
    escaped = value.replace("\\", "\\\\").encode("utf-16-be")
    units = (int.from_bytes(escaped[at : at + 2]) for at in range(0, len(escaped), 2))
    return "".join(chr(unit) if 0x20 <= unit < 0x7F else f"\\u{unit:04x}" for unit in units)


def _new_id() -> str:
    # The tool would read an id that starts with a dash as an option; Kafka's own ids never do.
    found = "-"
    while found.startswith("-"):
        found = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return found
