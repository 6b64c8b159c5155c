"""Logs of a release that a cluster does not let us follow."""

from pathlib import Path
from typing import Any

import pytest

from bettong.cluster.api import Cluster
from bettong.cluster.following import Follower
from bettong.errors import ClusterForbiddenError
from tests.console.api_server import NAMESPACE, RELEASE, served_api

WORKER = {
    "metadata": {"name": "trial-worker-0", "labels": {"app.kubernetes.io/component": "worker"}},
    "status": {"containerStatuses": [{"name": "worker", "state": {"running": {}}}]},
}


class OnePod:
    """A pod whose log nobody may read. An authorizer of its own words the refusal."""

    broken: str | None = None

    def answer(self, _method: str, path: str, _body: bytes) -> tuple[int, dict[str, Any] | str]:
        """See AnsweringApi."""
        if "/log" in path:
            return 403, {"kind": "Status", "message": "logs of this project are closed"}
        return 200, {"metadata": {}, "items": [WORKER]}


def test_a_log_that_must_not_be_read_ends_the_following_however_the_cluster_words_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with served_api(OnePod(), tmp_path / "kubeconfig"), Cluster(namespace=NAMESPACE) as cluster:
        lines = Follower(cluster, RELEASE, "worker", None).lines()
        with pytest.raises(ClusterForbiddenError, match="logs of this project are closed"):
            next(lines)
