"""A workload of a cluster, reached through its API server: by `kubectl port-forward`, which is there as helm is."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bettong.errors import ClusterError
from bettong.local.addresses import LOOPBACK
from bettong.local.processes import Command, Process

_START_S_MAX = 30.0
_POLL_S = 0.05
# https://github.com/kubernetes/kubernetes/blob/v1.37.0/staging/src/k8s.io/client-go/tools/portforward/portforward.go
_LISTENS = re.compile(rf"^Forwarding from ({re.escape(LOOPBACK)}:\d+) -> ", re.MULTILINE)


@contextmanager
def forwarded(
    workload: str, port: int, *, namespace: str, context: str | None, folder: Path
) -> Iterator[str]:
    """Inside, an address of this machine, which it gives, leads to a pod of `workload`, such as deployment/x-sender.

    All goes through the API server, and ends with the pod. Raises ClusterError where nobody listens in time.
    """
    program = shutil.which("kubectl")
    if program is None:
        raise ClusterError(
            "kubectl is not on the PATH: it forwards ports; install it, or say by target.sender and target.receiver"
            " where they are reached"
        )
    words = ["port-forward", workload, f":{port}", "--address", LOOPBACK, "--namespace", namespace]
    words += ["--context", context] if context is not None else []
    log = folder / f"{workload.replace('/', '-')}.log"
    process = Process(Command(f"kubectl port-forward {workload}", (program, *words), log))
    try:
        yield _listening(process)
    finally:
        process.stop()


def _listening(process: Process) -> str:
    deadline = time.monotonic() + _START_S_MAX
    while time.monotonic() < deadline:
        if found := _LISTENS.search(process.command.log.read_text(errors="replace")):
            return found[1]
        if process.ending is not None:
            break
        time.sleep(_POLL_S)
    raise ClusterError(
        f"{process.command.name} does not listen: {' | '.join(process.tail()) or 'it said nothing'}"
    )
