"""Ends with 0 when the Spark worker of this pod has been registered by a master, whose URL its page then holds.

For a readiness probe, every few seconds on the worker's own CPUs: it imports little.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping

PORT = 8081
WAIT_S_MAX = 4.0


def master(host: str, port: int) -> str:
    """The URL of the worker's master, empty until there is one. Raises OSError and ValueError when no page comes."""
    with socket.create_connection((host, port), WAIT_S_MAX) as line:
        line.sendall(b"GET /json/ HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    page = json.loads(answer.partition(b"\r\n\r\n")[2])
    return str(page["masterurl"])


def main(environment: Mapping[str, str]) -> int:
    """0 when a master has registered it, else 1."""
    return 0 if master(environment["POD_IP"], PORT) else 1


if __name__ == "__main__":
    sys.exit(main(os.environ))
