"""What a suite listens on answers nobody who does not know its secrets, and its folders show them to nobody."""

from __future__ import annotations

import ast
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil
import pytest

from bettong.client import Credentials, Sender, Subscriber
from bettong.config.access import digest
from bettong.config.connection_settings import KafkaConnection, KafkaMechanism, KafkaSecurity, RedisConnection
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LogError, RefusedError, StoreError
from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord
from bettong.local.suite import Suite
from tests.waiting import eventually

APPLICATION = Path(__file__).parents[2] / "examples" / "word_count.py"

_NOBODY = 65534
TOKEN = "a-token-of-this-test"  # noqa: S105 - of this test

# Asks a port in the words of whoever may listen there, and prints the first answer that is more than a refusal.
_STRANGER = r"""
import socket, struct, sys
questions = {
    "redis": b"KEYS *\r\n",
    "kafka": struct.pack(">ihhihBBB", 13, 60, 0, 1, -1, 0, 0, 0),
    "http": b"GET / HTTP/1.0\r\n\r\n",
    "py4j": b"j\nj\nSystem\n\n",
    "py4j command": b"c\nt\nexit\ne\n",
}
for port in map(int, sys.argv[1:]):
    for name, question in questions.items():
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1.5) as asked:
                asked.sendall(question)
                answer = asked.recv(4096)
        except OSError:
            answer = b""
        print(port, name, answer[:80])
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SuiteRecord]:
    """Of a suite that asks clients for tokens."""
    folder = tmp_path_factory.mktemp("closed")
    tokens = folder / "tokens.toml"
    tokens.write_text(f'[mine]\nsha256 = "{digest(TOKEN)}"\nwrite = ["*/*"]\nread = ["*"]\nconsole = true\n')
    options = SuiteOptions(application=str(APPLICATION), partitions=1, keep=folder / "suite", console=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BETTONG_TOKENS", str(tokens))
        with Suite(options) as suite:
            eventually(lambda: shown(suite.record, TOKEN) == 200, seconds=60, what="the console answers")
            yield suite.record


def shown(record: SuiteRecord, token: str) -> int | None:
    """The status of the console's answer to who shows a token; None while it does not run."""
    try:
        return httpx2.get(
            f"{record.console}/api/now", headers={"authorization": f"Bearer {token}"}, timeout=5
        ).status_code
    except httpx2.TransportError:
        return None


def processes(record: SuiteRecord) -> list[psutil.Process]:
    found = [psutil.Process(each.pid) for each in record.services.values()]
    return [*found, *(child for each in found for child in each.children(recursive=True))]


def is_daemon(process: psutil.Process) -> bool:
    try:
        return "bettong_processor.daemon" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def is_process_id(line: str) -> bool:
    """Whether an answer is a number of 32 bits, and nothing else."""
    answer = ast.literal_eval(re.sub(r"^.*? (?=b['\"])", "", line))
    return len(answer) == 4 and 0 < int.from_bytes(answer, "big") < 1 << 22


def ports(record: SuiteRecord) -> dict[int, str]:
    """Every port on which the suite's processes listen, and at which address."""
    return ports_of(processes(record))


def ports_of(processes: Iterable[psutil.Process]) -> dict[int, str]:
    found: dict[int, str] = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # a child that has done its work meanwhile listens at nothing
            found |= {
                each.laddr.port: each.laddr.ip
                for each in process.net_connections(kind="tcp")
                if each.status == psutil.CONN_LISTEN
            }
    return found


def test_everything_listens_on_loopback_alone(record: SuiteRecord) -> None:
    found = ports(record)
    assert len(found) >= 6, "Redis, Kafka twice, sender, receiver, console"
    assert {address.removeprefix("::ffff:") for address in found.values()} <= {"127.0.0.1", "::1"}


def test_a_stranger_is_told_nothing_at_any_port(record: SuiteRecord) -> None:
    """As another user of the machine where we may become one, else as one without the secrets.

    Sender and receiver answer by gRPC: see the tests of tokens below.
    """
    asked = [*map(str, ports(record))]
    other = _NOBODY if os.geteuid() == 0 else None
    command = [sys.executable if other is None else shutil.which("python3", path=os.defpath), "-c", _STRANGER]
    done = subprocess.run(
        [*map(str, command), *asked],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd="/",
        user=other,
        group=other,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 5 * len(asked)
    grpc = {each.rpartition(":")[2] for each in (record.sender, record.receiver)}
    reported = [line for line in lines if line.partition(" ")[0] not in grpc and not line.endswith(" b''")]
    # Spark's Python daemon forks a process for whoever connects, says its number, and then asks for Spark's secret.
    daemons = {str(port) for port in ports_of(process for process in processes(record) if is_daemon(process))}
    reported = [line for line in reported if not (line.partition(" ")[0] in daemons and is_process_id(line))]
    # py4j tells strangers that it does not know a word, and for each that it knows that they must log in first. The
    # console tells who does not speak HTTP that this is none, and who does not name it that it is not meant.
    console = ("HTTP/1.1 400 Bad Request", "HTTP/1.1 421 Misdirected Request")
    refusals = ("-NOAUTH", "-ERR", "Unknown command received", "Authentication error", *console)
    assert [line for line in reported if not any(each in line for each in refusals)] == []
    for refusal in ("-NOAUTH", "Authentication error"):
        assert any(refusal in line for line in reported), f"Redis and py4j were among them: {reported}"


def test_sender_and_receiver_refuse_who_has_no_token_and_serve_who_has(record: SuiteRecord) -> None:
    for stranger in (Credentials(), Credentials(token="wrong")):  # noqa: S106 - of this test
        with pytest.raises(RefusedError, match="token"):
            Sender(record.sender, "lines", reconnect_s=0.0, credentials=stranger)
        with (
            pytest.raises(RefusedError, match="token"),
            Subscriber(record.receiver, "counts", credentials=stranger) as asked,
        ):
            next(asked)
    mine = Credentials(token=TOKEN)
    with Sender(record.sender, "lines", credentials=mine) as sender:
        sender.send_rows([b"once"])
    with Subscriber(record.receiver, "counts", credentials=mine) as results:
        assert b"once" in next(results).messages[0]


def test_the_console_refuses_who_has_no_token(record: SuiteRecord) -> None:
    assert (shown(record, "wrong"), shown(record, TOKEN)) == (401, 200)


def test_kafka_and_redis_refuse_who_does_not_know_the_password(record: SuiteRecord, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    for connection in (
        KafkaConnection(record.kafka),
        KafkaConnection(
            record.kafka,
            KafkaSecurity.SASL_PLAINTEXT,
            mechanism=KafkaMechanism.PLAIN,
            user=record.kafka_user,
            password_file=wrong,
        ),
    ):
        with pytest.raises(LogError), LogAdmin(connection) as admin:
            admin.ends(["word-count.dead-letters"])
    with pytest.raises(StoreError), RedisStore(RedisConnection(record.redis), record.name) as store:
        LiveMetrics(store).live()
    with LogAdmin(record.kafka_connection) as admin, RedisStore(record.redis_connection, record.name):
        assert admin.ends([f"{record.name}.dead-letters"])


def test_folders_and_secrets_are_the_owners_alone(record: SuiteRecord) -> None:
    assert stat.S_IMODE(record.directory.stat().st_mode) == 0o700
    secret_files = [record.kafka_password_file, record.redis_password_file, record.state_key_file]
    settings_files = [
        record.directory / "redis" / "redis.conf",
        record.directory / "kafka" / "server.properties",
    ]
    for path in (*secret_files, *settings_files):
        assert path is not None
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_no_secret_stands_on_a_command_line_in_an_environment_or_in_the_record(record: SuiteRecord) -> None:
    files = [record.kafka_password_file, record.redis_password_file]
    secrets = [path.read_text() for path in files if path is not None]
    assert len(secrets) == 2
    seen = [(record.directory / "suite.json").read_text()]
    for process in processes(record):
        with suppress(psutil.NoSuchProcess):  # a short-lived child of Java's that has ended
            seen += [*process.cmdline(), *process.environ().values()]
    assert not [text for text in seen for secret in secrets if secret in text]
