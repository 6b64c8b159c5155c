"""Every place that knows the services by name says what their entries say."""

import itertools
import tomllib
from pathlib import Path

import pytest

from bettong.chaos.memory import BOUNDS_MB
from bettong.chaos.spec import TARGETS
from bettong.config.console import ConsoleSettings
from bettong.config.reading import settings_class
from bettong.config.service import ServiceSettings, ServingSettings
from bettong.metric_series import Scope
from bettong.metrics import SERIES
from bettong.services import CONSOLE, CONSOLE_PORT, METRICS_PORT, SERVICES, ServiceEntry
from tests.images.containerfile import PATH, ROOT, stages

GROUP = "bettong.services"
STAGES = stages(PATH.read_text())

each_service = pytest.mark.parametrize("entry", SERVICES.values(), ids=SERVICES.keys())


def commands(manifest: Path) -> dict[str, str]:
    """The services that a package makes `bettong` run."""
    found: dict[str, str] = (
        tomllib.loads(manifest.read_text())["project"].get("entry-points", {}).get(GROUP, {})
    )
    return found


def test_every_service_is_a_package_that_the_command_finds_and_there_is_no_other() -> None:
    found = {
        manifest.parent.name: commands(manifest)
        for manifest in ROOT.glob("services/*/pyproject.toml")
        if commands(manifest)
    }
    assert found == {name: {name: f"bettong_{name}.main:main"} for name in (*SERVICES, CONSOLE)}


@each_service
def test_settings_are_of_the_service_and_say_where_it_serves(entry: ServiceEntry) -> None:
    kind = settings_class(entry)
    assert issubclass(kind, ServiceSettings)
    default = kind.model_fields["instance"].get_default(call_default_factory=True, validated_data={})
    assert default.startswith(f"{entry.name}-")
    assert issubclass(kind, ServingSettings) is (entry.grpc_port is not None)
    if entry.grpc_port is not None:
        assert kind.model_fields[entry.listen_setting].default == f"127.0.0.1:{entry.grpc_port}"


def test_every_settings_class_and_every_scope_of_metrics_belongs_to_one_service() -> None:
    named = {settings_class(each) for each in SERVICES.values()} | {ConsoleSettings}
    assert {*ServiceSettings.__subclasses__(), *ServingSettings.__subclasses__()} - {ServingSettings} == named
    scopes = [scope for each in SERVICES.values() for scope in each.scopes]
    assert sorted([*scopes, Scope.SERVICE]) == sorted(Scope)
    assert {each.scope for each in SERIES} == set(Scope)


def test_no_two_services_share_a_port_or_a_component() -> None:
    ports = [port for each in SERVICES.values() for port in (each.grpc_port, each.health_port) if port]
    assert len({METRICS_PORT, CONSOLE_PORT, *ports}) == 2 + len(ports)
    components = list(itertools.chain.from_iterable(each.components for each in SERVICES.values()))
    assert len(components) == len(set(components))
    assert all((each.grpc_port is None) is (each.health_port is None) for each in SERVICES.values())


@each_service
def test_an_image_runs_the_service_and_says_where_it_serves(entry: ServiceEntry) -> None:
    stage = STAGES[entry.name]
    assert stage.last("CMD") == "[" + ", ".join(f'"{word}"' for word in entry.command) + "]"
    assert stage.last("EXPOSE") == (str(entry.grpc_port) if entry.grpc_port is not None else "")


def test_faults_reach_every_service_and_its_memory_is_bounded() -> None:
    assert SERVICES.keys() <= set(TARGETS)
    assert BOUNDS_MB.keys() == set(TARGETS)
    assert all(bound > 0 for bound in BOUNDS_MB.values())
