"""`helm test`: sends one message through the sender and awaits its result at the receiver, or asks for their health.

Addresses and texts come from the environment: SENDER, RECEIVER (host:port), SOURCE, MESSAGE, SINK, TIMEOUT_S.
"""

import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from bettong.cli.ending import end_well
from bettong.cli.main import app
from bettong.client import Subscriber
from bettong.local.probes import grpc_serves

POLL_S = 0.5


def trip(environment: Mapping[str, str], name: str) -> None:
    """Sends the message under a name of its own, and returns when a result that holds the name has come."""
    message = environment["MESSAGE"].replace("{id}", name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "message.json"
        file.write_text(message)
        words = ["send", environment["SOURCE"], str(file), "--to", environment["SENDER"]]
        if code := end_well(app, words, name="bettong"):
            raise SystemExit(code)
    with Subscriber(environment["RECEIVER"], environment["SINK"]) as results:
        for result in results:
            for found in result.messages:
                if name.encode() in found:
                    print(f"{environment['SINK']}: {found!r}", flush=True)
                    return


def main(environment: Mapping[str, str]) -> None:
    """Ends by SIGALRM when it takes too long."""
    signal.alarm(int(environment["TIMEOUT_S"]))
    for service in (environment["SENDER"], environment["RECEIVER"]):
        print(f"waiting until {service} serves", flush=True)
        while not grpc_serves(service):
            time.sleep(POLL_S)
    if environment.get("SOURCE"):
        trip(environment, f"helm-test-{uuid.uuid4().hex}")


if __name__ == "__main__":
    main(os.environ)
    sys.exit(0)
