"""A real Prometheus for tests, and promtool: Debian's package."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.processes import Command
from bettong.local.server import Server

_PROGRAM, _TOOL = "prometheus", "promtool"
_START_S_MAX = 60.0  # a second alone
_ANSWER_S_MAX = 30.0
_TOOL_S_MAX = 120.0

Sample = tuple[dict[str, str], float]


class PromtoolError(Exception):
    """What promtool said when it failed."""


def is_installed() -> bool:
    """Whether both programs are there."""
    return shutil.which(_PROGRAM) is not None and shutil.which(_TOOL) is not None


def promtool(*words: str) -> str:
    """What promtool prints. Raises PromtoolError."""
    done = subprocess.run([_TOOL, *words], capture_output=True, text=True, check=False, timeout=_TOOL_S_MAX)
    if done.returncode:
        raise PromtoolError(done.stdout + done.stderr)
    return done.stdout


class PrometheusServer(Server):
    """Prometheus on a free loopback port, with a configuration; it scrapes and evaluates rules each second."""

    def __init__(
        self, folder: Path, scrape_configs: Sequence[Mapping[str, Any]], rule_files: Sequence[Path]
    ) -> None:
        self.address = f"{LOOPBACK}:{free_ports(1)[0]}"
        configuration = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "scrape_configs": list(scrape_configs),
            "rule_files": [str(path) for path in rule_files],
        }
        path = folder / "prometheus.yml"
        path.write_text(yaml.safe_dump(configuration))
        words = (
            f"--config.file={path}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
        )
        super().__init__(
            Command(_PROGRAM, (_PROGRAM, *words), folder / "prometheus.log", {"GOMAXPROCS": "1"}),
            answers=self._is_ready,
            start_s_max=_START_S_MAX,
        )

    def ask(self, expression: str) -> list[Sample]:
        """The labels and the value of each series of an instant query. Raises HTTPError when it does not parse."""
        answer = self._get("query", query=expression)
        assert answer["resultType"] == "vector", expression
        return [(each["metric"], float(each["value"][1])) for each in answer["result"]]

    def label_values(self, label: str, selector: str) -> list[str]:
        """The values of a label in the series that are selected."""
        found: list[str] = self._get(f"label/{label}/values", **{"match[]": selector})
        return found

    def rules(self) -> list[dict[str, Any]]:
        """All rules as Prometheus has loaded them: with health, state and alerts."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _get(self, path: str, **asked: str) -> Any:
        url = f"http://{self.address}/api/v1/{path}?{urlencode(asked)}"
        with urlopen(url, timeout=_ANSWER_S_MAX) as answer:
            return json.load(answer)["data"]

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"http://{self.address}/-/ready", timeout=1.0):
                return True
        except (URLError, TimeoutError, ConnectionError):
            return False
