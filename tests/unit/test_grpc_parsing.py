"""Bytes that are no request are refused with a reason, over real connections to a small server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from bettong.client import Credentials
from tests.servers.grpc_echo import (
    ANSWER_S_MAX,
    TOKEN,
    TOKENS,
    Call,
    healthy,
    refused,
    run,
    served,
    sources,
    subscription,
)

METHODS = {
    "/bettong.v1.SubscribeService/Subscribe": True,
    "/bettong.v1.IngestService/ListSources": False,
    "/grpc.health.v1.Health/Check": False,
    "/grpc.health.v1.Health/Watch": True,
}
# A field of length 5 with 2 bytes, a tag of no type, text that is no UTF-8.
GARBAGE = [b"\x0a\x05ab", b"\xff\xff\xff", b"\x0a\x02\xff\xfe"]


def raw(method: str, data: bytes) -> Call:
    """A call whose request is these bytes."""

    def call(address: str, credentials: Credentials) -> object:
        with credentials.channel(address) as connected:
            channel: Any = connected
            options: dict[str, Any] = {
                "metadata": credentials.metadata(address),
                "timeout": ANSWER_S_MAX,
            }
            if METHODS[method]:
                return list(channel.unary_stream(method)(data, **options))
            return channel.unary_unary(method)(data, **options)

    return call


@pytest.mark.parametrize("guarded", [False, True])
def test_bytes_that_are_no_request_are_refused_with_a_reason_and_without_a_traceback(
    guarded: bool,  # noqa: FBT001 - a parameter of pytest
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(TOKENS)
    credentials = Credentials(token=TOKEN) if guarded else Credentials()

    async def scene() -> None:
        async with served({"tokens": str(tokens)} if guarded else {}) as address:
            for method in METHODS:
                # ListSources has no fields: only a broken tag is no request.
                garbage = GARBAGE[1:2] if method.endswith("ListSources") else GARBAGE
                for data in garbage:
                    code, text = await refused(raw(method, data), address, credentials)
                    assert code is grpc.StatusCode.INVALID_ARGUMENT, (method, data, text)
                    assert f"{len(data)} bytes that are no request of this method" in text
            assert (await asyncio.to_thread(subscription("rejected"), address, credentials)) is not None
            assert (await asyncio.to_thread(sources, address, credentials)) is not None
            # The health service knows no service.
            assert await asyncio.to_thread(healthy, address, credentials) is not None

    run(scene())
    said = "".join(capfd.readouterr()) + caplog.text
    assert "Traceback" not in said
