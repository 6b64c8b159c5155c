"""Where the processes of a suite tell their metrics: each at a port of its own, which other commands are told."""

import socket
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bettong.cli.run import describe
from bettong.errors import SettingsError
from bettong.local.addresses import LOOPBACK, free_ports, is_free
from bettong.local.directories import Directories
from bettong.local.metrics_addresses import metrics_addresses
from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord
from bettong.local.services import measured
from bettong.local.suite import Suite

APPLICATION = Path(__file__).parents[2] / "examples" / "word_count.py"
VARIABLE = "BETTONG_METRICS_LISTEN"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., Suite]]:
    """A suite with its processes as they would be started; none is."""
    directories = Directories(tmp_path / "kept")

    def make(**options: Any) -> Suite:
        suite = Suite(SuiteOptions(application=str(APPLICATION), **options))
        suite._make_servers("word-count", directories)
        return suite

    yield make
    directories.remove()


def listens(suite: Suite) -> dict[str, str]:
    """What each process is told; one that is told nothing takes what it inherits."""
    environments = {name: server.command.environment for name, server in suite._servers.items()}
    return {name: each[VARIABLE] for name, each in environments.items() if VARIABLE in each}


def test_each_process_has_a_port_of_its_own_from_the_one_that_is_given(
    made: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = next(port for port in free_ports(50) if all(is_free(port + index) for index in range(5)))
    monkeypatch.setenv(VARIABLE, f"{LOOPBACK}:{first}")
    suite = made(senders=2, standby=True)
    names = ["sender", "sender-2", "processor", "processor-2", "receiver"]
    assert listens(suite) == {name: f"{LOOPBACK}:{first + index}" for index, name in enumerate(names)}
    assert suite.record.metrics == listens(suite)
    assert SuiteRecord.model_validate_json(suite.record.model_dump_json()).metrics == suite.record.metrics
    described = StringIO()
    describe(suite.record, Console(file=described, width=200), Path("kept"))
    assert f"  metrics       http://{LOOPBACK}:{first}/metrics (sender)\n" in described.getvalue()
    assert f"  metrics       http://{LOOPBACK}:{first + 4}/metrics (receiver)\n" in described.getvalue()
    assert max(map(len, suite.record.metrics_lines)) < 78


def test_port_0_stands_for_free_ports_which_are_known_before_the_start(made: Callable[..., Suite]) -> None:
    suite = made(settings={"metrics_listen": f"{LOOPBACK}:0"})
    assert list(listens(suite)) == ["processor", "sender", "receiver"]
    ports = {int(address.rpartition(":")[2]) for address in suite.record.metrics.values()}
    assert len(ports) == 3
    assert 0 not in ports


def test_nobody_serves_metrics_unless_that_is_asked_for(
    made: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    suite = made()
    assert listens(suite) == {}
    assert suite.record.metrics_lines == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("9100", f"{VARIABLE}: '9100': expected host:port"),
        ("127.0.0.1:65534", "3 processes need a port each, from there on; choose 65533 or a lower one"),
    ],
)
def test_an_address_that_is_none_for_all_of_them_is_refused(given: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        metrics_addresses({}, {VARIABLE: given}, measured(1, standby=False))


def test_a_port_that_somebody_has_is_refused_under_the_name_of_the_process() -> None:
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        other.listen()
        taken = other.getsockname()[1]
        with pytest.raises(
            SettingsError, match=f"something listens on {LOOPBACK}:{taken}, the port of sender"
        ):
            metrics_addresses({}, {VARIABLE: f"{LOOPBACK}:{taken}"}, measured(1, standby=False))
