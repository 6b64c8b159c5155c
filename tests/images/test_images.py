"""The images themselves: built twice, looked into, and run as pods run them, with a real Kafka and a real Redis.

`make images` runs these. A cold run takes twenty minutes: nothing is built yet, and each image is built twice.
"""

import functools
import re
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bettong import metrics
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.broker import KafkaBroker
from bettong.local.probes import grpc_serves
from bettong.local.processes import Process
from bettong.local.redis_server import RedisServer
from examples.payments_load import main
from tests.images.containerfile import ROOT, SERVICES
from tests.images.containers import CPU, USER, Containers, containers
from tests.images.engine import Engine, Image
from tests.kubernetes.chart import DEV

pytestmark = [pytest.mark.long, pytest.mark.timeout(4 * 3600)]

UNWANTED = {"pip", "pip3", "uv", "gcc", "cc", "g++", "c++", "clang", "make", "mvn", "javac", "wget", "curl"}
# Where an index, a mirror or an authority of the builder's would have been left.
TRACES = (
    "etc/pip.conf",
    "opt/bettong/pip.conf",
    "etc/apt/sources.list",
    "etc/apt/sources.list.d",
    "usr/local/share/ca-certificates/*",
    "var/lib/apt/lists/*",
    "root/.*/*",
    "build",
    "run/certificates.pem",
    "opt/bettong/lib/*/site-packages/*/direct_url.json",
    "opt/bettong/lib/*/site-packages/*/uv_cache.json",
)
TRIP_S_MAX = 300
TMP = Path("/tmp")  # noqa: S108 - the container's


@pytest.fixture(scope="session")
def engine() -> Engine:
    return Engine("storage")


class Built(dict[str, Image]):
    """Each service's image, built when it is first asked for, by what earlier runs have left."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    def __missing__(self, service: str) -> Image:
        return self.setdefault(service, self._engine.build(service))


@pytest.fixture(scope="session")
def images(engine: Engine) -> Built:
    return Built(engine)


@pytest.fixture
def here(engine: Engine, tmp_path: Path, unique_name: Callable[..., str]) -> Iterator[Containers]:
    with containers(engine, tmp_path, unique_name("bettong-image")) as made:
        yield made


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_holds_nothing_that_builds_and_nothing_of_the_builder(
    engine: Engine, images: Built, service: str
) -> None:
    with engine.root(images[service]) as root:
        programs = {path.name for path in root.glob("**/bin/*")}
        assert not programs & UNWANTED
        packages = {path.name for path in root.glob("**/site-packages/*")}
        packages |= {path.name for path in root.glob("usr/lib/python3*/**/*") if path.is_dir()}
        assert not packages & {"pip", "uv", "ensurepip"}
        assert not [path for trace in TRACES for path in root.glob(trace)]
        open_ = [path for path in (root / "opt").rglob("*") if path.lstat().st_uid == USER or _is_open(path)]
        assert not open_, f"user {USER} may write into {open_[:5]}"
        assert re.search(rf"^bettong:x:{USER}:{USER}:", (root / "etc/passwd").read_text(), re.MULTILINE)


def _is_open(path: Path) -> bool:
    return not path.is_symlink() and bool(path.stat().st_mode & stat.S_IWOTH)


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_says_what_it_is(
    images: Built, service: str, record_property: Callable[[str, object], None]
) -> None:
    record_property("MB", images[service].mb)
    labels = images[service].config["Labels"]
    assert labels["org.opencontainers.image.title"] == f"bettong-{service}"
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert images[service].config["User"] == f"{USER}:{USER}"
    assert images[service].config["Entrypoint"] == ["/usr/bin/tini", "--"]


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_starts_on_a_read_only_root_as_nobody_on_one_cpu(
    here: Containers, images: Built, service: str
) -> None:
    looks = here.run(
        images[service],
        "sh",
        "-c",
        "id -u; nproc; grep -E '^(Cap|NoNew|Cpus_allowed_l)' /proc/self/status; touch /opt/x",
    )
    ending = looks.wait(60)
    said = looks.command.log.read_text()
    assert ending is not None
    assert ending.status != 0
    assert "Read-only file system" in said
    assert said.startswith(f"{USER}\n1\n")
    assert re.findall(r"Cap\w+:\s+(\w+)", said) == ["0" * 16] * 5
    assert re.search(rf"Cpus_allowed_list:\s+{CPU}\n", said)
    helps = here.run(images[service], *images[service].config["Cmd"], "--help")
    ending = helps.wait(120)
    assert ending is not None
    assert ending.status == 0, helps.describe_end()


class Deployment:
    """Spark's master and a worker, driver, sender and receiver in containers, as the chart runs them."""

    def __init__(self, here: Containers, images: Built, kafka: str, redis: str, name: str) -> None:
        source = DEV.read_text().partition("source: |\n")[2].partition("\n\nkafka:")[0]
        text = "\n".join(line.removeprefix("    ") for line in source.splitlines())
        (here.given / "app.py").write_text(text.replace('"totals")\n', f'"{name}")\n', 1) + "\n")
        ports = [str(port) for port in free_ports(6)]
        self.sender, self.receiver = (f"{LOOPBACK}:{port}" for port in ports[:2])
        master, worker = ports[2:4], ports[4:]
        self.settings = {
            "BETTONG_APPLICATION": "/given/app.py",
            "BETTONG_KAFKA": kafka,
            "BETTONG_REDIS": redis,
            "BETTONG_PARTITIONS": "2",
            "BETTONG_SENDER_LISTEN": self.sender,
            "BETTONG_RECEIVER_LISTEN": self.receiver,
            "BETTONG_INSTANCE": "driver",
            "BETTONG_SPARK_MASTER": f"spark://{LOOPBACK}:{master[0]}",
            "BETTONG_CHECKPOINT": str(TMP / "checkpoint"),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_WORKER_DIR": str(TMP / "work"),
        }
        serve = functools.partial(here.serve, variables=self.settings)
        processor = images["processor"]
        has = ("--cores", "1", "--memory", "1200M", self.settings["BETTONG_SPARK_MASTER"])
        self.spark = [
            serve(processor, *spark("Master", *master), answers=lambda: listens(int(master[0]))),
            serve(
                processor,
                *spark("Worker", *worker),
                *has,
                answers=lambda: listens(int(worker[1])),
            ),
        ]
        self.services = [
            serve(processor, answers=lambda: is_running(redis, name)),
            serve(images["sender"], answers=lambda: grpc_serves(self.sender)),
            serve(images["receiver"], answers=lambda: grpc_serves(self.receiver)),
        ]

    def describe_ends(self) -> str:
        return "\n".join(
            f"{each.command.name}: {each.describe_end()}" for each in (*self.spark, *self.services)
        )


def spark(kind: str, port: str, page: str) -> tuple[str, ...]:
    addresses = ("--host", LOOPBACK, "--port", port, "--webui-port", page)
    return ("spark-class", f"org.apache.spark.deploy.{kind.lower()}.{kind}", *addresses)


def is_running(redis: str, name: str) -> bool:
    """Whether the driver says that it runs."""
    with RedisStore(redis, name) as store:
        return LiveMetrics(store).live().get("driver", {}).get(metrics.STATE.name) == "running"


def test_a_message_goes_through_the_images(
    here: Containers,
    images: Built,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
) -> None:
    """By the chart's own test, in a container too; then by some thousands more."""
    there = Deployment(here, images, kafka.bootstrap, redis_server.url, unique_name("images"))
    for server in (*there.spark, *there.services):
        server.wait()
    look = ("bettong", "health", "--memory", str(TMP / "health.json"), "--running")
    must_succeed(here.run(images["processor"], *look, **there.settings), there)
    script = ROOT / "deploy/helm/bettong/files/await_result.py"
    (here.given / script.name).write_text(script.read_text())
    asked = {
        "SENDER": there.sender,
        "RECEIVER": there.receiver,
        "SOURCE": "payments",
        "MESSAGE": '{"account": "{id}", "amount": 12.5}',
        "SINK": "totals",
        "TIMEOUT_S": str(TRIP_S_MAX),
    }
    must_succeed(here.run(images["sender"], "python3", f"/given/{script.name}", **asked), there)
    addresses = ["--sender", there.sender, "--receiver", there.receiver]
    main([*addresses, "--payments", "5000", "--timeout-s", str(TRIP_S_MAX)])
    for server in there.services:
        assert server.process is not None
        assert server.process.stop().status == 0, server.describe_end()


def must_succeed(process: Process, there: Deployment) -> None:
    ending = process.wait(TRIP_S_MAX + 30)
    assert ending is not None, there.describe_ends()
    assert ending.status == 0, f"{process.describe_end()}\n{there.describe_ends()}"


def test_two_builds_are_equal_to_the_byte(images: Built) -> None:
    again = Engine("again")
    again.clear()
    try:
        second = {service: again.build(service).digest for service in SERVICES}
        first = {service: images[service].digest for service in SERVICES}
        if second != first:
            # The packages of the system may have moved on since the first ones were built: they may be days old.
            again.clear()
            first = {service: again.build(service).digest for service in SERVICES}
        assert second == first
    finally:
        again.clear()


def listens(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False
