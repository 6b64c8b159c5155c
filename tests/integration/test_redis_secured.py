"""Redis with TLS and a user: the settings of BETTONG_REDIS, with a real server that accepts nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import StoreError
from bettong.metrics import STATE
from tests.servers.certificates import Authority
from tests.servers.secured_redis import SECRET, USER, SecuredRedis


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredRedis]:
    with SecuredRedis(tmp_path_factory.mktemp("redis")) as server:
        yield server


def url_of(
    server: SecuredRedis, user: str = USER, password: str = SECRET, authority: Path | None = None
) -> str:
    """Everything that a client needs, in one URL."""
    ca = authority or server.authority.ca
    return f"rediss://{user}:{password}@{server.address}/0?ssl_ca_certs={ca}"


def test_metrics_go_by_tls_under_the_user_of_the_url(server: SecuredRedis) -> None:
    with RedisStore(url_of(server), "shop") as store:
        LiveMetrics(store).write_live("sender-1", {STATE.name: "running"}, 60)
        assert LiveMetrics(store).live()["sender-1"][STATE.name] == "running"


@pytest.mark.parametrize(("user", "password"), [(USER, "guessed-word"), ("stranger", SECRET)])
def test_a_wrong_password_is_reported_at_once_and_not_shown(
    server: SecuredRedis, user: str, password: str
) -> None:
    with (
        RedisStore(url_of(server, user, password), "shop") as store,
        pytest.raises(StoreError, match="refuses this user or password; correct BETTONG_REDIS") as raised,
    ):
        store.wait(20.0, lambda _: None)
    assert password not in str(raised.value)


def test_a_strangers_certificate_and_plain_text_are_refused(server: SecuredRedis, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger")
    for url, reason in (
        (url_of(server, authority=stranger.ca), "certificate that cannot be verified"),
        (f"redis://{USER}:{SECRET}@{server.address}/0", "does not answer"),
    ):
        with RedisStore(url, "shop") as store, pytest.raises(StoreError, match=reason) as raised:
            store.wait(0.2, lambda _: None)
        assert SECRET not in str(raised.value)
