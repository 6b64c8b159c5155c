"""A real control plane on loopback: etcd, API server, controllers, scheduler; and kwok, which plays the nodes.

What is real: admission, defaults, controllers, scheduling, RBAC, disruption budgets, Pod Security, the class of a
pod. What kwok only plays: pods run as soon as they are bound, and no command of theirs is ever started.
"""

import json
import os
import secrets
import ssl
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.processes import Command
from bettong.local.server import Server
from tests.kubernetes.building import CONTROL_PLANE
from tests.kubernetes.chart import HELM, called
from tests.waiting import eventually

_START_S_MAX = 120.0
_STAGES = Path(__file__).parent / "simulated" / "stages.yaml"
_USERS = {"admin": "system:masters", "system:kube-controller-manager": "", "system:kube-scheduler": ""}
NODES = 3
# Pods whose logs kwok plays.
LOGGED = ("trial-bettong-worker-0", "trial-bettong-worker-1", "trial-bettong-driver-0")


class ControlPlane:
    """A context manager; all of it lies in `folder`, and ends with it. `played`: with nodes of kwok's, else none.

    `forwards`: to which ports of this machine connections go that are forwarded to ports of played pods.
    """

    def __init__(
        self, folder: Path, *, played: bool = True, forwards: Mapping[int, int] | None = None
    ) -> None:
        self._nodes = NODES if played else 0
        self._folder = folder
        self._bin = CONTROL_PLANE.folder
        self._etcd, self._peer, self.port, self._kubelet = free_ports(4)
        self._forwards = forwards or {}
        self._stack = ExitStack()

    @property
    def programs(self) -> Path:
        """What containers of played pods can run."""
        return self._folder / "programs"

    @property
    def authority(self) -> Path:
        """The certificate that the API server's is signed by."""
        return self._folder / "ca.crt"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._make_keys()
        self._make_users()
        with self._stack as stack:
            for server in (self._etcd_server(), self._api_server(), *self._workers()):
                stack.callback(server.kill)
                server.start()
            self._stack = stack.pop_all()
        for number in range(self._nodes):
            self._make_node(number)
        eventually(lambda: len(self._ready_nodes()) == self._nodes, seconds=60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def kubectl(self, *words: str, given: str = "") -> str:
        """What it prints. Raises CallError."""
        return self._call(HELM.parent / "kubectl", words, given)

    def helm(self, major: int, *words: str) -> str:
        """What helm 3 or 4 prints. Raises CallError."""
        return self._call(self._bin / "helm3" if major == 3 else HELM, words)

    def get(self, *words: str) -> Any:
        """Objects, read."""
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def _call(self, program: Path, words: Sequence[str], given: str = "") -> str:
        config = str(self.config_of("admin"))
        return called(program, words, given, KUBECONFIG=config, HOME=str(self._folder))

    def _make_keys(self) -> None:
        names = "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        for words in (
            ("req", "-x509", *curve, "-days", "2", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt"),
            (
                "req",
                *curve,
                "-subj",
                "/CN=api",
                "-addext",
                names,
                "-keyout",
                "server.key",
                "-out",
                "server.csr",
            ),
            (
                *(
                    "x509",
                    "-req",
                    "-in",
                    "server.csr",
                    "-CA",
                    "ca.crt",
                    "-CAkey",
                    "ca.key",
                    "-CAcreateserial",
                ),
                *("-days", "2", "-copy_extensions", "copy", "-out", "server.crt"),
            ),
            ("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "accounts.key"),
        ):
            subprocess.run(["openssl", *words], cwd=self._folder, check=True, capture_output=True, timeout=30)

    def _make_users(self) -> None:
        lines = []
        for user, group in _USERS.items():
            token = secrets.token_hex(16)
            lines.append(f'{token},{user},{user},"{group}"')
            cluster = {
                "server": f"https://{LOOPBACK}:{self.port}",
                "certificate-authority": str(self.authority),
            }
            config = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": user}}],
                "users": [{"name": user, "user": {"token": token}}],
                "clusters": [{"name": "here", "cluster": cluster}],
            }
            self.config_of(user.removeprefix("system:")).write_text(json.dumps(config))
        (self._folder / "tokens.csv").write_text("\n".join(lines) + "\n")

    def config_of(self, user: str) -> Path:
        """The kubeconfig of a user; `admin` may do everything."""
        return self._folder / f"{user}.kubeconfig"

    def _server(self, name: str, words: Sequence[str], answers: Any) -> Server:
        environment = {"PATH": f"{self._programs()}:{os.defpath}"} if name == "kwok" else {}
        command = Command(
            name, (str(self._bin / name), *words), self._folder / f"{name}.log", environment=environment
        )
        return Server(command, answers=answers, start_s_max=_START_S_MAX)

    def _etcd_server(self) -> Server:
        clients, peers = f"http://{LOOPBACK}:{self._etcd}", f"http://{LOOPBACK}:{self._peer}"
        words = [
            *(
                "--name",
                "t",
                "--data-dir",
                str(self._folder / "etcd"),
                "--unsafe-no-fsync",
                "--log-level",
                "warn",
            ),
            *("--listen-client-urls", clients, "--advertise-client-urls", clients),
            *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
            *("--initial-cluster", f"t={peers}"),
        ]
        return self._server("etcd", words, lambda: _says_ok(f"{clients}/health", None))

    def _api_server(self) -> Server:
        here = self._folder
        words = [
            *("--etcd-servers", f"http://{LOOPBACK}:{self._etcd}"),
            *("--bind-address", LOOPBACK, "--advertise-address", LOOPBACK, "--secure-port", str(self.port)),
            *("--endpoint-reconciler-type", "none", "--service-cluster-ip-range", "10.96.0.0/16"),
            *(
                "--tls-cert-file",
                str(here / "server.crt"),
                "--tls-private-key-file",
                str(here / "server.key"),
            ),
            *("--token-auth-file", str(here / "tokens.csv"), "--authorization-mode", "Node,RBAC"),
            *("--service-account-issuer", "https://kubernetes.default.svc"),
            *("--service-account-key-file", str(here / "accounts.key")),
            *("--service-account-signing-key-file", str(here / "accounts.key"), "--profiling=false"),
            # As kubeadm has it; which namespaces may is Pod Security's to say.
            "--allow-privileged=true",
        ]
        url = f"https://{LOOPBACK}:{self.port}/readyz"
        return self._server("kube-apiserver", words, lambda: _says_ok(url, self.authority))

    def _workers(self) -> list[Server]:
        """Controllers, scheduler and nodes: there when they run; what they do is waited for by who needs it."""
        here = self._folder
        controllers = [
            *("--kubeconfig", str(self.config_of("kube-controller-manager")), "--leader-elect=false"),
            *("--secure-port", "0", "--use-service-account-credentials", "--cluster-name", "test"),
            *("--kube-api-qps", "500", "--kube-api-burst", "1000", "--root-ca-file", str(self.authority)),
            *("--service-account-private-key-file", str(here / "accounts.key")),
        ]
        scheduler = [
            "--kubeconfig",
            str(self.config_of("kube-scheduler")),
            "--leader-elect=false",
            "--secure-port",
            "0",
        ]
        nodes = [
            *(
                "--kubeconfig",
                str(self.config_of("admin")),
                "--config",
                str(_STAGES),
                "--config",
                str(self._played()),
                "--cidr",
                "10.100.0.0/16",
            ),
            *("--node-ip", LOOPBACK, "--manage-all-nodes=false", "--node-lease-duration-seconds", "40"),
            *("--server-address", f"{LOOPBACK}:{self._kubelet}", "--node-port", str(self._kubelet)),
            *(
                "--tls-cert-file",
                str(here / "server.crt"),
                "--tls-private-key-file",
                str(here / "server.key"),
            ),
            *("--manage-nodes-with-label-selector", "type=fake"),
        ]
        return [
            self._server("kube-controller-manager", controllers, lambda: True),
            self._server("kube-scheduler", scheduler, lambda: True),
            *([self._server("kwok", nodes, lambda: True)] if self._nodes else []),
        ]

    def _played(self) -> Path:
        """What kwok plays of containers: logs out of files, commands that run on this machine, and ports of it."""
        logs = [
            {
                "apiVersion": "kwok.x-k8s.io/v1alpha1",
                "kind": "ClusterLogs",
                "metadata": {"name": name},
                "spec": {
                    "selector": {"matchNames": [name]},
                    "logs": [
                        {
                            "logsFile": str(self.log_of(name)),
                            "previousLogsFile": str(self.log_of(name, previous=True)),
                            "follow": True,
                        }
                    ],
                },
            }
            for name in LOGGED
        ]
        execs = {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterExec",
            "metadata": {"name": "all"},
            "spec": {"execs": [{"local": {}}]},
        }
        ports = {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterPortForward",
            "metadata": {"name": "all"},
            "spec": {
                "forwards": [
                    {"ports": [port], "target": {"address": LOOPBACK, "port": target}}
                    for port, target in self._forwards.items()
                ]
            },
        }
        file = self._folder / "played.yaml"
        file.write_text("\n---\n".join(json.dumps(each) for each in [*logs, execs, ports]))
        return file

    def log_of(self, pod: str, *, previous: bool = False) -> Path:
        """The file that a pod's log is read from; lines as a container runtime writes them."""
        return self._folder / f"{pod}{'.previous' if previous else ''}.log"

    def _programs(self) -> Path:
        """A folder in which a test may put what containers can run."""
        self.programs.mkdir(exist_ok=True)
        return self.programs

    def _make_node(self, number: int) -> None:
        size = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
        name = f"fake-{number}"
        labels = {"type": "fake", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        status = {"capacity": size, "allocatable": size}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": status,
        }
        self.kubectl("create", "-f", "-", given=json.dumps(node))

    def _ready_nodes(self) -> list[str]:
        return [
            node["metadata"]["name"]
            for node in self.get("nodes")["items"]
            if any(
                c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", [])
            )
        ]


def _says_ok(url: str, authority: Path | None) -> bool:
    trust = ssl.create_default_context(cafile=str(authority)) if authority else None
    try:
        with urllib.request.urlopen(url, timeout=1, context=trust) as answer:  # noqa: S310 - ours
            return int(answer.status) == 200
    except OSError:
        return False
