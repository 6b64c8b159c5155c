"""A node that runs its pods' commands as processes of this machine: a kubelet and a kube-proxy, as small as will do.

Real: commands, variables, volumes, tokens, probes, restarts, preStop, SIGTERM and grace; addresses of Services, by the
EndpointSlices of the controllers. Not there: images, limits, isolation, policies, names. The API server is told
addresses in 10.0.0.0/8, for it refuses loopback in EndpointSlices; here they are those in 127.0.0.0/8.
"""

import contextlib
import itertools
import json
import os
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kubernetes import client, config

from bettong.local.processes import Process
from tests.kubernetes.containers import Container, Object
from tests.kubernetes.probes import Probe
from tests.kubernetes.service_addresses import ServiceAddresses, ready_addresses

NODE = "real"
_POLL_S = 0.2
_LEASE_S = 10.0
_BACKOFF_S = (1.0, 2.0, 5.0)
_SIZE = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


class Api:
    """JSON in and out of an API server, for several threads."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client = config.new_client_from_config(config_file=str(kubeconfig), persist_config=False)

    def call(self, method: str, path: str, body: Object | None = None) -> dict[str, Any]:
        """Raises ApiException."""
        headers = {"Accept": "application/json"}
        if body is not None:
            merge = (
                "application/strategic-merge-patch+json" if "pods" in path else "application/merge-patch+json"
            )
            headers["Content-Type"] = merge if method == "PATCH" else "application/json"
        words = self._client.param_serialize(
            method, path, header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        answer = self._client.call_api(*words, _request_timeout=30)
        text = answer.read()
        if answer.status >= 300:
            raise client.ApiException(status=answer.status, reason=text.decode())
        return dict(json.loads(text))


class Kubelet:
    """A context manager: the node `real` and its pods. `namespace`: whose Services are served."""

    def __init__(
        self, kubeconfig: Path, folder: Path, namespace: str, environment: Mapping[str, str]
    ) -> None:
        self.api, self.folder, self.namespace = Api(kubeconfig), folder, namespace
        self.environment = environment
        self.services = ServiceAddresses()
        self._numbers = itertools.count()
        self._pods: dict[str, PodThread] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="kubelet", daemon=True)
        self.faults: list[str] = []

    def __enter__(self) -> Self:
        self._make_node()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(30)
        for pod in self._pods.values():
            pod.killed.set()
        for pod in self._pods.values():
            pod.join(30)
        self.services.close()

    def address(self) -> str:
        """A loopback address that nobody else has: by the number of this process, for several runs at a time."""
        number = next(self._numbers)
        return f"127.{100 + os.getpid() // 250 % 100}.{os.getpid() % 250}.{number + 1}"

    def read(self, path: str, namespace: str, name: str) -> Object:
        """An object of the API."""
        return self.api.call("GET", path.format(namespace, name))

    def token(self, namespace: str, account: str) -> str:
        """A token of a service account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
        return str(self.api.call("POST", path, body)["status"]["token"])

    def _make_node(self) -> None:
        labels = {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}
        meta = {"name": NODE, "labels": labels}
        self.api.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        ready = {"type": "Ready", "status": "True", "reason": "Real", "lastHeartbeatTime": now()}
        status = {"capacity": _SIZE, "allocatable": _SIZE, "conditions": [ready]}
        self.api.call("PATCH", f"/api/v1/nodes/{NODE}/status", {"status": status})
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NODE}}
        self.api.call("POST", self._lease(), {**lease, "spec": self._renewed()})

    def _lease(self) -> str:
        return "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

    def _renewed(self) -> Object:
        return {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": now()}

    def _work(self) -> None:
        renewed_s = time.monotonic()
        while not self._ended.wait(_POLL_S):
            try:
                if time.monotonic() - renewed_s > _LEASE_S:
                    self.api.call("PATCH", f"{self._lease()}/{NODE}", {"spec": self._renewed()})
                    renewed_s = time.monotonic()
                self._serve()
                self._look()
            except client.ApiException as error:
                self.faults.append(str(error))

    def _serve(self) -> None:
        there = f"namespaces/{self.namespace}"
        for service in self.api.call("GET", f"/api/v1/{there}/services")["items"]:
            name = service["metadata"]["name"]
            if name not in self.services.addresses and service["spec"].get("clusterIP") != "None":
                self.services.add(service, self.address())
        slices = self.api.call("GET", f"/apis/discovery.k8s.io/v1/{there}/endpointslices")["items"]
        self.services.endpoints = ready_addresses(slices, lambda address: "127." + address.partition(".")[2])

    def _look(self) -> None:
        pods = self.api.call("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}")["items"]
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if uid not in self._pods and "deletionTimestamp" not in pod["metadata"]:
                self._pods[uid] = PodThread(self, pod)
                self._pods[uid].start()
            elif uid in self._pods and "deletionTimestamp" in pod["metadata"]:
                self._pods[uid].leave(pod["metadata"].get("deletionGracePeriodSeconds", 30))
        there = {pod["metadata"]["uid"] for pod in pods}
        for uid, thread in self._pods.items():
            if uid not in there:
                thread.killed.set()


class PodThread(threading.Thread):
    """The life of a pod with one container."""

    def __init__(self, kubelet: Kubelet, pod: Object) -> None:
        super().__init__(name=pod["metadata"]["name"], daemon=True)
        self._kubelet, self._pod = kubelet, pod
        self._path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self._address = kubelet.address()
        self._restarts, self._reported = 0, ""
        self._grace_s: float | None = None
        self._left = threading.Event()
        self.killed = threading.Event()

    def leave(self, grace_s: float) -> None:
        """Is asked to end, within so many seconds."""
        self._grace_s = grace_s
        self._left.set()

    def run(self) -> None:
        folder = self._kubelet.folder / f"{self.name}-{self._pod['metadata']['uid'][:8]}"
        while not self._ends():
            container = Container(
                self._pod,
                self._address,
                folder,
                self._kubelet.services.addresses,
                self._kubelet.environment,
                self._kubelet.read,
                self._kubelet.token,
            )
            process = container.start()
            try:
                self._live(container, process)
            finally:
                process.kill()
            if self._ends() or not self._begins_again(process):
                break
            self._restarts += 1
            self._left.wait(_BACKOFF_S[min(self._restarts, len(_BACKOFF_S)) - 1])
        while not self._ends():
            self._left.wait(_POLL_S)
        with contextlib.suppress(client.ApiException):
            uid = self._pod["metadata"]["uid"]
            self._kubelet.api.call(
                "DELETE", self._path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
            )

    def _ends(self) -> bool:
        return self._left.is_set() or self.killed.is_set()

    def _live(self, container: Container, process: Process) -> None:
        """Asks probes until the process ends, must end, or is asked to."""
        kinds = ("startupProbe", "readinessProbe", "livenessProbe")
        probes = {kind: Probe(container.spec[kind], container) for kind in kinds if kind in container.spec}
        started = "startupProbe" not in probes
        try:
            while process.ending is None and not self._ends():
                if not started:
                    probes["startupProbe"].ask(process)
                    started = probes["startupProbe"].holds
                else:
                    for kind in ("readinessProbe", "livenessProbe"):
                        if kind in probes:
                            probes[kind].ask(process)
                if any(probes[kind].failed for kind in ("startupProbe", "livenessProbe") if kind in probes):
                    self._kubelet.faults.append(f"{self.name}: a probe failed: {process.describe_end()}")
                    return
                ready = started and ("readinessProbe" not in probes or probes["readinessProbe"].holds)
                self._report({"running": {}}, "Running", ready=ready, started=started)
                self._left.wait(_POLL_S)
            if process.ending is None and not self.killed.is_set():
                self._bid_farewell(container, process)
        finally:
            for probe in probes.values():
                probe.end()

    def _bid_farewell(self, container: Container, process: Process) -> None:
        """preStop, SIGTERM, and what is left of the grace; the caller kills what is there then."""
        until_s = time.monotonic() + (self._grace_s or 0)
        hook = container.spec.get("lifecycle", {}).get("preStop", {})
        if "sleep" in hook:
            process.wait(float(hook["sleep"]["seconds"]))
        elif "exec" in hook:
            called = Process(
                container.command(hook["exec"]["command"], container.folder / "preStop.log", process)
            )
            called.wait(max(0.0, until_s - time.monotonic()))
            called.kill()
        process.terminate()
        process.wait(max(0.0, until_s - time.monotonic()))
        if process.ending is None:
            self._kubelet.faults.append(f"{self.name}: killed after its grace: {process.describe_end()}")

    def _begins_again(self, process: Process) -> bool:
        """Tells how it ended; returns whether its policy is to begin again."""
        ending = process.ending
        code = 0 if ending is None or ending.status == 0 else ending.status % 256
        state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
        policy = self._pod["spec"]["restartPolicy"]
        if policy == "Always" or (policy == "OnFailure" and code):
            self._report(state, "Running", ready=False, started=False)
            self._kubelet.faults.append(f"{self.name}: starts again: {process.describe_end()}")
            return True
        self._report(state, "Failed" if code else "Succeeded", ready=False, started=False)
        return False

    def _report(self, state: Object, phase: str, *, ready: bool, started: bool) -> None:
        said = f"{state} {phase} {ready} {started} {self._restarts}"
        if said == self._reported:
            return
        truth, address = "True" if ready else "False", "10." + self._address.partition(".")[2]
        conditions = [
            {"type": kind, "status": truth if kind != "Initialized" else "True", "lastTransitionTime": now()}
            for kind in ("Initialized", "ContainersReady", "Ready")
        ]
        (spec,) = self._pod["spec"]["containers"]
        container = {
            "name": spec["name"],
            "image": spec["image"],
            "imageID": "",
            "restartCount": self._restarts,
            "ready": ready,
            "started": started,
            "state": state,
        }
        status = {
            "phase": phase,
            "startTime": now(),
            "hostIP": "10.0.0.1",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": conditions,
            "containerStatuses": [container],
        }
        with contextlib.suppress(client.ApiException):  # it may be gone; else it is reported at the next poll
            self._kubelet.api.call("PATCH", f"{self._path}/status", {"status": status})
            self._reported = said
