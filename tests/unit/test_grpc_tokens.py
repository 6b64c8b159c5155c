"""Which calls a token permits, over real connections to a small server."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from structlog.testing import capture_logs

from bettong.client import Credentials
from bettong.config.access import digest
from bettong.config.reading import read
from bettong.config.receiver import ReceiverSettings
from bettong.errors import RefusedError, SettingsError
from bettong.v1 import subscribe_pb2
from bettong.v1.ingest_pb2 import (
    IngestFrame,
    IngestRequest,
    ListSourcesRequest,
)
from bettong.v1.ingest_pb2_grpc import (
    IngestServiceStub,
)
from bettong.v1.subscribe_pb2_grpc import (
    SubscribeServiceStub,
)
from tests.servers.grpc_echo import (
    ANSWER_S_MAX,
    PERMISSIONS,
    TOKEN,
    TOKENS,
    Call,
    healthy,
    hello,
    refused,
    run,
    secured,
    served,
    session,
    sources,
    subscription,
)
from tests.waiting import eventually


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(TOKENS)
    return path


def rewrite(path: Path, text: str) -> None:
    """Replaces the file, as an operator does."""
    path.write_text(text)


@pytest.mark.parametrize(
    ("call", "answers"),
    [
        (session(hello("orders", "feed-1"), IngestRequest(frame=IngestFrame(sequence=1))), 2),
        (session(hello("orders", "feed-2")), 1),
    ],
)
def test_a_token_lets_its_holder_write(tokens: Path, call: Call, answers: int) -> None:
    async def scene() -> None:
        async with served({"tokens": tokens}) as address:
            assert await asyncio.to_thread(call, address, Credentials(token=TOKEN)) == answers
            await asyncio.to_thread(sources, address, Credentials(token=TOKEN))
            await asyncio.to_thread(subscription("rejected"), address, Credentials(token=TOKEN))
            await asyncio.to_thread(healthy, address, Credentials())

    run(scene())


def test_no_token_and_a_wrong_one_are_refused_on_every_method(tokens: Path) -> None:
    async def scene() -> None:
        async with served({"tokens": tokens}) as address:
            for call in (sources, session(hello("orders", "feed-1")), session(), subscription("rejected")):
                for credentials, what in (
                    (Credentials(), "no token was sent"),
                    (Credentials(token="wrong"), "this token is not known here"),  # noqa: S106 - of this test
                    (Credentials(token="x" * 4000), "this token is not known here"),
                    (Credentials(token=digest(TOKEN)), "this token is not known here"),
                ):
                    with capture_logs() as lines:
                        code, details = await refused(call, address, credentials)
                    assert code is grpc.StatusCode.UNAUTHENTICATED
                    assert details.startswith(what)
                    assert credentials.token is None or credentials.token not in str(lines)

    run(scene())


@pytest.mark.parametrize(
    "shown",
    [
        [("authorization", TOKEN)],
        [("authorization", f"Basic {TOKEN}")],
        [("authorization", f"Bearer {TOKEN}"), ("authorization", "Bearer other")],
        [("authorization", "Bearer ")],
        [("authorization-bin", b"\xff\x00")],
    ],
)
def test_garbage_in_place_of_a_token_is_refused(tokens: Path, shown: list[tuple[str, Any]]) -> None:
    def call(address: str, credentials: Credentials) -> object:
        with credentials.channel(address) as channel:
            stub = IngestServiceStub(channel)
            return stub.ListSources(ListSourcesRequest(), metadata=tuple(shown), timeout=ANSWER_S_MAX)

    async def scene() -> None:
        async with served({"tokens": tokens}) as address:
            code, _ = await refused(call, address, Credentials())
            assert code is grpc.StatusCode.UNAUTHENTICATED

    run(scene())


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (session(hello("orders", "other")), "token 'feed' may not write orders/other"),
        (session(hello("nbbo", "feed-1")), "token 'feed' may not write nbbo/feed-1"),
        (session(IngestRequest(frame=IngestFrame(sequence=1))), "token 'feed' may not write /"),
        (session(IngestRequest()), "token 'feed' may not write /"),
        (subscription("dead-letters"), "token 'feed' may not read sink dead-letters"),
        (subscription(""), "token 'feed' may not read sink"),
    ],
)
def test_a_stream_and_a_sink_of_others_are_refused(tokens: Path, call: Call, what: str) -> None:
    async def scene() -> None:
        async with served({"tokens": tokens}) as address:
            code, details = await refused(call, address, Credentials(token=TOKEN))
            assert code is grpc.StatusCode.PERMISSION_DENIED
            assert details.startswith(what)

    run(scene())


def test_a_method_that_no_rule_names_is_refused(tokens: Path) -> None:
    async def scene() -> None:
        async with served({"tokens": tokens}, permissions={}) as address:
            code, _ = await refused(sources, address, Credentials(token=TOKEN))
            assert code is grpc.StatusCode.PERMISSION_DENIED

    run(scene())


def test_a_revoked_token_ends_its_calls(tokens: Path) -> None:
    async def scene() -> None:
        async with served({"tokens": tokens}) as address:
            shown = Credentials(token=TOKEN)
            with shown.channel(address) as channel:
                request = subscribe_pb2.SubscribeRequest(sink="rejected")
                call: Any = SubscribeServiceStub(channel).Subscribe(request, metadata=shown.metadata(address))
                await asyncio.to_thread(next, call)
                with capture_logs() as lines:
                    rewrite(tokens, "[feed")  # a file being written: the previous content stays in use
                    await asyncio.to_thread(eventually, lambda: bool(lines))
                    assert "not TOML" in lines[0]["reason"]
                    assert call.is_active()
                rewrite(tokens, TOKENS.replace('"rejected"', ""))
                await asyncio.to_thread(eventually, lambda: not call.is_active())
                assert call.code() is grpc.StatusCode.PERMISSION_DENIED
            await asyncio.to_thread(session(hello("orders", "feed-1")), address, shown)
            rewrite(tokens, TOKENS.replace(digest(TOKEN), digest("new")))
            code, _ = await refused(session(hello("orders", "feed-1")), address, shown)
            assert code is grpc.StatusCode.UNAUTHENTICATED
            await asyncio.to_thread(session(hello("orders", "feed-1")), address, replace(shown, token="new"))  # noqa: S106

    run(scene())


def test_a_file_of_tokens_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text("#" * (1024 * 1024 + 1))
    with pytest.raises(SettingsError, match="at most 1048576"):
        secured(
            read(ReceiverSettings, {"application": "x.py", "tokens": path}),
            PERMISSIONS,
            structlog.get_logger(),
        )


def test_a_token_never_goes_to_another_machine_in_plain_text(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="in plain text; set BETTONG_CLIENT_CA"):
        Credentials(token=TOKEN).metadata("sender:7100")
    assert Credentials(tmp_path / "ca.pem", token=TOKEN).metadata("sender:7100")
    with pytest.raises(RefusedError, match="cannot read"):
        Credentials(token_file=tmp_path / "none").metadata("127.0.0.1:1")
    with pytest.raises(RefusedError, match="printable ASCII"):
        Credentials(token="a\nb").metadata("127.0.0.1:1")  # noqa: S106 - of this test
