"""Sets first counts by the scale subresource: `set_counts.py statefulsets/NAME=COUNT ...`, run in a pod once.

Needs nothing but Python: the API server's address and the pod's token are where Kubernetes puts them.
"""

import json
import os
import ssl
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
WAIT_S_MAX = 20.0


def request(target: str, *, server: str, namespace: str, token: str) -> urllib.request.Request:
    """The call that sets one count. `target` is RESOURCE/NAME=COUNT, the resource one of the group apps."""
    resource, _, count = target.partition("=")
    body = json.dumps({"spec": {"replicas": int(count)}}).encode()
    return urllib.request.Request(  # noqa: S310 - `server` is the cluster's own
        f"{server}/apis/apps/v1/namespaces/{namespace}/{resource}/scale",
        data=body,
        method="PATCH",
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"},
    )


def main(targets: Sequence[str], environment: Mapping[str, str], account: Path) -> None:
    """Sets all; raises urllib's errors, and the job tries again."""
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    address = f"[{host}]" if ":" in host else host
    trust = ssl.create_default_context(cafile=str(account / "ca.crt"))
    for target in targets:
        scaling = request(
            target,
            server=f"https://{address}:{port}",
            namespace=(account / "namespace").read_text(),
            token=(account / "token").read_text(),
        )
        with urllib.request.urlopen(scaling, timeout=WAIT_S_MAX, context=trust):  # noqa: S310 - see above
            print(f"{target}: set", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:], os.environ, ACCOUNT)
