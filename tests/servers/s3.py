"""A real server that speaks S3 on this machine: moto's, as a process. What it holds ends with it."""

from __future__ import annotations

import http.client
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import boto3
import pytest
from s3fs import S3FileSystem

from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.processes import Command
from bettong.local.server import Server

_START_S_MAX = 60.0
_ANSWER_S_MAX = 1.0
# With its first call it loads what plays S3.
_LOAD_S_MAX = 120.0

BUCKET = "snapshots"
REGION = "us-east-1"
KEY_ID, SECRET = "an-id-of-tests", "a-secret-of-tests"


class S3Server(Server):
    """On a free port, which stays over a kill and a start. It takes any credentials, unless `environment` says not."""

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        self.port = free_ports(1)[0]
        super().__init__(
            Command(
                "s3",
                (sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(self.port)),
                directory / "s3.log",
                environment=environment or {},
            ),
            answers=lambda: self._status("GET", "/moto-api/") is not None,
            start_s_max=_START_S_MAX,
        )

    @property
    def endpoint(self) -> str:
        """Where clients connect: AWS_ENDPOINT_URL."""
        return f"http://{LOOPBACK}:{self.port}"

    def be_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Has the environment name it, and closes the connections to others, which fsspec keeps a process."""
        values = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": REGION,
        }
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        fresh_clients()

    def make_bucket(self) -> None:
        """Makes `BUCKET`; there may be one."""
        assert self._status("PUT", f"/{BUCKET}", _LOAD_S_MAX) == http.client.OK

    def put(self, path: str, data: bytes) -> None:
        """Puts an object below the bucket, past all of our own code."""
        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
            region_name=REGION,
        )
        client.put_object(Bucket=BUCKET, Key=path, Body=data)

    def _status(self, method: str, path: str, wait_s: float = _ANSWER_S_MAX) -> int | None:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=wait_s)
        with closing(connection):
            try:
                connection.request(method, path)
                return connection.getresponse().status
            except (OSError, http.client.HTTPException):
                return None


def fresh_clients() -> None:
    """The next command reads the environment anew."""
    S3FileSystem.clear_instance_cache()
