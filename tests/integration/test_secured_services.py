"""Sender and receiver behind TLS, clients' certificates and tokens, with the commands that call them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app
from bettong.client import Credentials, Sender, Subscriber
from bettong.config.access import digest
from bettong.errors import ClientError, RefusedError
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from tests.samples.result_frames import Note, columns
from tests.servers.certificates import Authority
from tests.servers.grpc_echo import healthy, refusal_of, sources
from tests.servers.receiver_process import Feed, ReceiverProcess
from tests.servers.sender_process import SenderProcess

TOKEN = "a-token-of-this-test"  # noqa: S105 - of this test
OTHER = "another-one"


@dataclass(frozen=True)
class Secured:
    """The services' settings, and those of a client that they accept."""

    settings: dict[str, Any]
    client: Credentials


@pytest.fixture
def secured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Secured:
    """Sets the environment of an accepted client, which probes and commands use."""
    authority = Authority(tmp_path / "authority")
    server, client = authority.issue(), authority.issue("feed.test", name="client")
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(
        f'[feed]\nsha256 = "{digest(TOKEN)}"\nwrite = ["lines/*"]\nread = ["notes"]\n'
        f'[other]\nsha256 = "{digest(OTHER)}"\nwrite = ["lines/*"]\n'
    )
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    for name, path in (("CA", authority.ca), ("CERTIFICATE", client.certificate), ("KEY", client.key)):
        monkeypatch.setenv(f"BETTONG_CLIENT_{name}", str(path))
    monkeypatch.setenv("BETTONG_CLIENT_TOKEN_FILE", str(token))
    settings = {
        "BETTONG_TLS_CERTIFICATE": str(server.certificate),
        "BETTONG_TLS_KEY": str(server.key),
        "BETTONG_TLS_CLIENTS": str(authority.ca),
        "BETTONG_TOKENS": str(tokens),
        "BETTONG_LOG_LEVEL": "debug",
    }
    return Secured(settings, Credentials.from_environment())


def strangers(known: Credentials) -> list[tuple[Credentials, type[ClientError], str]]:
    """Clients that services refuse, and the error of each."""
    certified = Credentials(known.ca, known.certificate, known.key)
    wrong = Credentials(known.ca, known.certificate, known.key, token="wrong")  # noqa: S106 - of this test
    return [
        (Credentials(), ClientError, "if it speaks TLS, set BETTONG_CLIENT_CA"),
        (Credentials(known.ca), ClientError, "if it requires a certificate, set BETTONG_CLIENT_CERTIFICATE"),
        (Credentials(known.certificate), RefusedError, "no authority of BETTONG_CLIENT_CA has signed"),
        (certified, RefusedError, "no token was sent"),
        (wrong, RefusedError, "this token is not known here"),
    ]


@pytest.fixture
def new_sender(
    secured: Secured,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    tmp_path: Path,
    unique_name: Callable[..., str],
) -> Callable[..., SenderProcess]:
    """Makes one with these further settings."""
    return partial(
        SenderProcess,
        unique_name(),
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        **secured.settings,
    )


def test_a_sender_takes_the_streams_of_a_token_and_refuses_the_rest(
    secured: Secured, new_sender: Callable[..., SenderProcess], tmp_path: Path
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("one\ntwo\n")
    probed = f"{LOOPBACK}:{free_ports(1)[0]}"
    with new_sender(BETTONG_HEALTH_LISTEN=probed) as sender:
        sender.settle()
        healthy(probed, Credentials())
        assert refusal_of(sources, probed, Credentials())[0] is grpc.StatusCode.UNIMPLEMENTED
        with Sender(sender.address, "lines") as fed:
            fed.send_rows([b"zero"])
        assert end_well(app, ["send", "lines", str(lines), "--to", sender.address], name="bettong") == 0
        for client, kind, reported in strangers(secured.client):
            with pytest.raises(kind, match=reported):
                Sender(sender.address, "lines", reconnect_s=0.0, credentials=client)
        with pytest.raises(RefusedError, match="token 'feed' may not write quotes/s"):
            Sender(sender.address, "quotes", "s")
        log = sender.log.read_text()
    assert "call refused" in log
    assert TOKEN not in log
    assert digest(TOKEN) not in log


def test_each_token_has_its_own_share_of_a_senders_sessions_also_at_one_address(
    secured: Secured, new_sender: Callable[..., SenderProcess]
) -> None:
    with new_sender(BETTONG_SENDER_SESSIONS_PER_CLIENT_MAX="1") as sender:

        def fed(stream: str, token: str, reconnect_s: float = 0.0) -> Sender:
            credentials = replace(secured.client, token=token, token_file=None)
            return Sender(sender.address, "lines", stream, reconnect_s=reconnect_s, credentials=credentials)

        with fed("a", TOKEN) as one:
            one.send_rows([b"zero"])
            with pytest.raises(
                ClientError, match="token feed has 1 sessions here, as many as one client may have"
            ):
                fed("b", TOKEN)
            with fed("c", OTHER) as other:
                other.send_rows([b"one"])
                with pytest.raises(ClientError, match="token other has 1 sessions here"):
                    fed("d", OTHER)
        with fed("b", TOKEN, reconnect_s=10.0) as one:  # once the sender has noticed that the other ended
            one.send_rows([b"two"])


def test_a_receiver_shows_the_sinks_of_a_token_and_refuses_the_rest(
    secured: Secured,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    tmp_path: Path,
    unique_name: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ReceiverProcess(
        unique_name(), tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, **secured.settings
    ) as receiver:
        feed = Feed(receiver.name, kafka.bootstrap)
        feed.append("notes", 0, [columns([Note("a", 1, 0.5)], origin="notes/x/0", sequence=1, previous=0)])
        feed.close()
        with Subscriber(receiver.address, "notes") as results:
            (seen,) = next(results).messages
        command = ["tail", "notes", "--receiver", receiver.address, "--count", "1"]
        assert end_well(app, command, name="bettong") == 0
        assert seen.decode() in capsys.readouterr().out
        for client, kind, reported in strangers(secured.client):
            with (
                Subscriber(receiver.address, "notes", reconnect_s=0.0, credentials=client) as results,
                pytest.raises(kind, match=reported),
            ):
                next(results)
        with (
            Subscriber(receiver.address, "dead-letters") as results,
            pytest.raises(RefusedError, match="token 'feed' may not read sink dead-letters"),
        ):
            next(results)
        log = receiver.log.read_text()
    assert TOKEN not in log
    assert digest(TOKEN) not in log
