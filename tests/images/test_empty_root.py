"""The first hour of someone new, in a root with nothing but the least of Debian and Python: wheels, pip, apt."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.test_newcomer import FIRST_HOUR_S_MAX, check_first_hour, make_packages, scripts
from tests.images.engine import Engine

# What the page asks for, beside Linux. `procps` and the like are not there.
PYTHON = "apt-get update --quiet && apt-get install --yes --quiet --no-install-recommends python3-venv"


@pytest.mark.long
@pytest.mark.timeout(3 * FIRST_HOUR_S_MAX)
def test_a_newcomer_gets_to_results_in_an_empty_root(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    pins = make_packages(dist)
    of_pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    variables = {
        **of_pip,
        "PIP_FIND_LINKS": str(dist),
        "PIP_CONSTRAINT": str(pins),
        **scripts("python3", alone="unshare --net"),
    }
    with Engine("newcomer").empty(dist, **variables) as inside:
        done = subprocess.run(
            [*inside, "sh", "-c", f'set -e; {PYTHON}; mkdir /home/new; cd /home/new; sh -c "$FIRST"'],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=2 * FIRST_HOUR_S_MAX,
        )
    assert done.returncode == 0, done.stdout
    check_first_hour(done.stdout)
