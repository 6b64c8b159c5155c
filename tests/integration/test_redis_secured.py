"""Redis by TLS and as a user of its own: what BETTONG_REDIS says, against a real server that takes nothing else."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from bettong.edges.redis_store import LiveFigures, RedisStore
from bettong.errors import StoreError
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.processes import Command
from bettong.local.server import Server
from bettong.metrics import STATE
from tests.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def place(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of a Redis that speaks TLS alone and knows the one user `bettong`, password `secret`."""
    program = shutil.which("redis-server")
    assert program is not None
    port, pair, folder = free_ports(1)[0], authority.issue(), tmp_path_factory.mktemp("redis")
    options = {
        "bind": [LOOPBACK],
        "port": ["0"],
        "tls-port": [str(port)],
        "tls-cert-file": [str(pair.certificate)],
        "tls-key-file": [str(pair.key)],
        "tls-ca-cert-file": [str(authority.ca)],
        "tls-auth-clients": ["no"],
        "dir": [str(folder)],
        "save": [""],
        "user": ["bettong", "on", ">secret", "~bettong:*", "+@all", "-@dangerous"],
    }
    words = [word for name, values in options.items() for word in (f"--{name}", *values)]

    def answers() -> bool:
        url = f"rediss://bettong:secret@{LOOPBACK}:{port}/0?ssl_ca_certs={authority.ca}"
        try:
            with Redis.from_url(url) as client:
                return bool(client.ping())
        except RedisConnectionError:
            return False

    command = Command("redis", (program, *words), folder / "redis.log")
    with Server(command, answers=answers, start_s_max=30.0):
        yield f"{LOOPBACK}:{port}"


def test_figures_go_by_tls_under_the_user_of_the_url(place: str, authority: Authority) -> None:
    with RedisStore(f"rediss://bettong:secret@{place}/0?ssl_ca_certs={authority.ca}", "shop") as store:
        LiveFigures(store).write_live("sender-1", {STATE.name: "running"}, 60)
        assert LiveFigures(store).live() == {"sender-1": {STATE.name: "running"}}


@pytest.mark.parametrize("user", ["bettong:guessed", "stranger:secret"])
def test_a_wrong_password_is_told_at_once_and_not_shown(place: str, authority: Authority, user: str) -> None:
    with (
        RedisStore(f"rediss://{user}@{place}/0?ssl_ca_certs={authority.ca}", "shop") as store,
        pytest.raises(StoreError, match="refuses this user or password; correct BETTONG_REDIS") as told,
    ):
        store.wait(20.0, lambda _: None)
    assert user.partition(":")[2] not in str(told.value).replace("bettong", "")


def test_a_strangers_certificate_and_plain_text_are_refused(place: str, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger")
    for url in (
        f"rediss://bettong:secret@{place}/0?ssl_ca_certs={stranger.ca}",
        f"redis://bettong:secret@{place}/0",
    ):
        with RedisStore(url, "shop") as store, pytest.raises(StoreError, match="does not answer") as told:
            store.wait(0.2, lambda _: None)
        assert "secret" not in str(told.value)
