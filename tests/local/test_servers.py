"""The broker and Redis: real ones, started, killed, started again."""

import re
import shutil
import socket
import sys
from pathlib import Path

import psutil
import pytest

from bettong.class_archives import KAFKA, archive
from bettong.errors import LocalError
from bettong.local import redis_server as redis_module
from bettong.local.addresses import LOOPBACK, free_ports, is_free
from bettong.local.broker import KafkaBroker
from bettong.local.probes import kafka_answers, redis_answers
from bettong.local.processes import Command
from bettong.local.redis_server import RedisServer
from bettong.local.server import Server

# A folder's name that Java's files must escape: Latin, beyond, and beyond 16 bits.
STRANGE = "jörg 50%d \\日𝄞"


def ask_redis(server: RedisServer, command: str) -> str:
    with socket.create_connection((LOOPBACK, server.port), timeout=5) as connection:
        connection.sendall(command.encode() + b"\r\n")
        return connection.recv(4096).decode()


def test_free_ports_are_different_and_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(is_free(port) for port in ports)
    with socket.socket() as taken:
        taken.bind((LOOPBACK, ports[0]))
        taken.listen()
        assert not is_free(ports[0])


def test_nobody_answers_where_nobody_listens() -> None:
    (port,) = free_ports(1)
    assert not redis_answers(port)
    assert not kafka_answers(port)


def test_a_server_that_dies_at_start_says_so_with_its_last_lines(tmp_path: Path) -> None:
    dying = Command(
        "the server", (sys.executable, "-c", "print('no licence'); raise SystemExit(9)"), tmp_path / "log"
    )
    with pytest.raises(
        LocalError, match=r"the server died: exit code 9; its last lines: no licence; its log: "
    ):
        Server(dying, answers=lambda: False, start_s_max=30).start()


def test_a_server_that_never_answers_is_ended(tmp_path: Path) -> None:
    mute = Command("the server", (sys.executable, "-c", "import time; time.sleep(600)"), tmp_path / "log")
    server = Server(mute, answers=lambda: False, start_s_max=0.3)
    with pytest.raises(LocalError, match=r"the server does not answer after 0.3 s: still running"):
        server.start()
    assert server.process is not None
    assert server.process.ending is not None


def test_redis_answers_until_it_is_stopped(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        assert ask_redis(server, "SET key value") == "+OK\r\n"
    assert not redis_answers(server.port)


def test_redis_keeps_its_data_through_a_kill_only_when_asked_to(tmp_path: Path) -> None:
    for appendonly, expected in ((True, "$5\r\nvalue\r\n"), (False, "$-1\r\n")):
        with RedisServer(tmp_path / str(appendonly), appendonly=appendonly) as server:
            ask_redis(server, "SET key value")
            server.kill()
            server.start()
            assert ask_redis(server, "GET key") == expected


def test_a_missing_redis_names_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("redis-server") is None
    with pytest.raises(LocalError, match="apt-get install redis-server"):
        redis_module.RedisServer(tmp_path)


def test_the_session_s_broker_answers(kafka: KafkaBroker) -> None:
    assert kafka_answers(kafka.port)
    assert kafka.bootstrap == f"127.0.0.1:{kafka.port}"


def test_a_broker_starts_from_its_class_data_archive(kafka: KafkaBroker) -> None:
    """Else it takes twice the CPU time to start: `make setup` records the archive for these very options."""
    assert kafka.process is not None
    mapped = {each.path for each in psutil.Process(kafka.process.pid).memory_maps()}
    assert str(archive(KAFKA)) in mapped


def test_two_servers_on_one_port_are_an_error_that_says_why(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    second = RedisServer(tmp_path / "redis", port=redis_server.port)
    second.launch()
    assert second.process is not None
    second.process.wait(10)  # the first one answers in its place until then
    with pytest.raises(LocalError, match=r"redis died: exit code 1;.*Address already in use"):
        second.wait()


def test_missing_jars_name_the_command_that_fetches_them(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="run `bettong setup`"):
        KafkaBroker(tmp_path, jars=tmp_path).start()


def test_a_folder_with_a_comma_is_refused_with_the_remedy(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path / "a, b" / "kafka")
    with pytest.raises(
        LocalError, match=r"a, b/kafka, whose path has a comma: .* choose a folder without one"
    ):
        broker.start()
    assert not broker.directory.exists()


def test_the_brokers_files_are_ascii_and_name_its_folder_as_java_reads_it(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path / STRANGE)
    broker.prepare()
    escaped = r"/j\u00f6rg 50%d \\\u65e5\ud834\udd1e"
    lines = (broker.directory / "server.properties").read_bytes().decode("ascii").splitlines()
    assert f"log.dirs={tmp_path}{escaped}/data" in lines
    lines = (broker.directory / "log4j2.properties").read_bytes().decode("ascii").splitlines()
    assert f"appender.file.fileName = {tmp_path}{escaped}/broker.log" in lines
    assert f"appender.file.filePattern = {tmp_path}{escaped.replace('%', '%%')}/broker.log.%i" in lines


class FormattedByTool(KafkaBroker):
    """By Kafka's own, whatever was kept."""

    def format_arguments(self) -> tuple[str, ...]:
        return ("--ignore-formatted",)


def test_what_setup_has_kept_formats_a_storage_as_kafkas_tool_does(tmp_path: Path) -> None:
    copied, formatted = KafkaBroker(tmp_path / "copied"), FormattedByTool(tmp_path / STRANGE)
    reported = []
    for broker in (copied, formatted):
        broker.prepare()
        data = broker.directory / "data"
        assert {path.name for path in data.iterdir()} == {"meta.properties", "bootstrap.checkpoint"}
        lines = (data / "meta.properties").read_text().splitlines()
        properties = dict(line.split("=") for line in lines if not line.startswith("#"))
        checkpoint = (data / "bootstrap.checkpoint").read_bytes()
        # Times and checksums differ.
        reported.append((sorted(properties), properties["version"], len(checkpoint), features(checkpoint)))
    assert reported[0] == reported[1]
    assert b"metadata.version" in reported[0][-1]
    assert not copied.command.log.exists(), "no Java ran; else `make setup` has kept nothing"


def features(checkpoint: bytes) -> dict[bytes, bytes]:
    """Features and what stands behind the name of each, its version among it."""
    return dict(re.findall(rb"([a-z.]+\.version)(.{3})", checkpoint, re.DOTALL))


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path, heap_mb=256)
    broker.prepare()
    (tmp_path / "data" / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=x\n")
    with pytest.raises(LocalError, match=r"kafka died: exit code 1; its last lines: .*node"):
        broker.start()


@pytest.mark.slow
def test_a_broker_goes_on_with_its_data_after_a_kill_and_a_stop(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path / STRANGE, heap_mb=256)
    with broker:
        assert (broker.directory / "broker.log").stat().st_size
        cluster = (broker.directory / "data" / "meta.properties").read_text()
        broker.kill()
        assert not kafka_answers(broker.port)
        broker.start()
    assert not broker.answers()
    with broker:
        assert broker.answers()
        assert (broker.directory / "data" / "meta.properties").read_text() == cluster
