"""The key that signs pickled states, mounted as docs/kubernetes.md says."""

import re
from pathlib import Path

import yaml

from tests.kubernetes.chart import REAL, RELEASE, ROOT, Chart
from tests.kubernetes.value_sets import merged


def test_the_key_of_pickled_states_is_mounted_as_the_page_says(chart: Chart) -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    (block,) = [
        each for each in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "state_key_file" in each
    ]
    rendered = chart.render(merged(REAL, yaml.safe_load(block)))
    file = Path(rendered.of("ConfigMap")["settings"]["data"]["BETTONG_STATE_KEY_FILE"])
    for owner in ("driver", "worker"):
        spec = rendered.pods[f"StatefulSet/{RELEASE}-bettong-{owner}"].spec
        (volume,) = [each for each in spec["volumes"] if each["name"] == "state-key"]
        (mount,) = [each for each in spec["containers"][0]["volumeMounts"] if each["name"] == "state-key"]
        assert volume["secret"]["defaultMode"] == 0o440
        assert Path(mount["mountPath"]) == file.parent
