"""The parts that the chart brings along, by themselves: the bundled Kafka and Redis, the job of first counts."""

import contextlib
import importlib.util
import json
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest
from redis import Redis

from bettong.edges.kafka_log import LogAdmin
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.broker import KafkaBroker
from bettong.local.probes import redis_answers
from bettong.local.processes import Command
from bettong.local.server import Server
from tests.kubernetes.chart import FOLDER, RELEASE, Chart
from tests.kubernetes.containers import PATH


class BundledKafka(KafkaBroker):
    """A broker with the chart's settings; addresses and folders are this machine's."""

    def __init__(self, directory: Path, settings: str) -> None:
        super().__init__(directory, heap_mb=256)
        moves = {
            "CLIENTS://:9092": f"CLIENTS://{self.bootstrap}",
            f"{RELEASE}-bettong-kafka:9092": self.bootstrap,
            "localhost:9093": f"127.0.0.1:{self._controller_port}",
            "/var/lib/kafka/bettong": str(self._data),
        }
        for there, here in moves.items():
            assert there in settings
            settings = settings.replace(there, here)
        self.settings = settings

    def prepare(self) -> None:
        super().prepare()
        self._settings_file.write_text(self.settings)


def test_a_broker_runs_with_the_settings_of_the_bundled_one(chart: Chart, tmp_path: Path) -> None:
    settings = chart.render(dev=True).of("ConfigMap")["kafka"]["data"]["server.properties"]
    with BundledKafka(tmp_path, settings) as broker, LogAdmin(broker.bootstrap) as admin:
        admin.create_topics(["log"], partitions=2, replication=1, frame_bytes_max=256 * 1024 * 1024)
        admin.check_topics(["log"], partitions=2, frame_bytes_max=256 * 1024 * 1024)
        assert admin.ends(["log"]) == {("log", 0): 0, ("log", 1): 0}
        assert kafka_answers(broker.bootstrap)
    assert not kafka_answers(broker.bootstrap)


def kafka_answers(address: str) -> bool:
    """What the probe of the bundled Kafka says."""
    words = ["bash", str(FOLDER / "files" / "answers.sh"), *address.rsplit(":", 1)]
    return subprocess.run(words, check=False, capture_output=True, timeout=30).returncode == 0


def test_a_port_that_is_open_and_says_nothing_of_kafkas_is_no_answer() -> None:
    with socket.create_server((LOOPBACK, 0)) as server, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(kafka_answers, f"{LOOPBACK}:{server.getsockname()[1]}")
        line, _ = server.accept()
        with line:
            line.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        assert not asked.result(30)


def test_a_redis_runs_with_the_arguments_of_the_bundled_one(chart: Chart, tmp_path: Path) -> None:
    (container,) = chart.render(dev=True).pods[f"StatefulSet/{RELEASE}-bettong-redis"].spec["containers"]
    words = [*container["command"], *container["args"]]
    words[words.index("/data")] = str(tmp_path)
    (port,) = free_ports(1)
    command = Command("redis", (*words, "--port", str(port)), tmp_path / "redis.log")
    with Server(command, answers=lambda: redis_answers(port), start_s_max=30), Redis(port=port) as client:
        client.set("a", "b")
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
        assert (tmp_path / "appendonlydir").is_dir()


@pytest.mark.long
def test_a_worker_is_ready_once_a_master_has_registered_it(tmp_path: Path) -> None:
    registered = script("registered")
    port, page, own = free_ports(3)

    def spark(kind: str, *words: str, web: int) -> Command:
        main = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
        call = (
            "env",
            f"PATH={PATH}",
            "spark-class",
            main,
            "--host",
            LOOPBACK,
            "--webui-port",
            str(web),
            *words,
        )
        return Command(kind, call, tmp_path / f"{kind}.log")

    def answers() -> bool:
        with contextlib.suppress(OSError, ValueError):
            return not registered.master(LOOPBACK, own)
        return False

    url = f"spark://{LOOPBACK}:{port}"
    with Server(spark("Worker", "--work-dir", str(tmp_path), url, web=own), answers=answers, start_s_max=90):
        master = spark("Master", "--port", str(port), web=page)
        with Server(master, answers=lambda: registered.master(LOOPBACK, own) == url, start_s_max=90):
            pass


def script(name: str) -> ModuleType:
    """One that lies in the chart and is no package."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / "files" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def set_counts() -> ModuleType:
    return script("set_counts")


def test_a_first_count_is_a_patch_of_the_scale_subresource(set_counts: ModuleType) -> None:
    cluster = {"server": "https://10.0.0.1:443", "namespace": "space", "token": "t"}
    found = set_counts.request("statefulsets/trial-bettong-worker=4", **cluster)
    assert found.get_method() == "PATCH"
    assert found.full_url == (
        "https://10.0.0.1:443/apis/apps/v1/namespaces/space/statefulsets/trial-bettong-worker/scale"
    )
    assert json.loads(found.data) == {"spec": {"replicas": 4}}
    assert found.headers == {"Authorization": "Bearer t", "Content-type": "application/merge-patch+json"}
