"""Where jars lie in this environment, and what else comes beside Python's packages.

The package bettong-jars brings both folders; `make setup` fills them (deploy/jars); an image has the connector's alone.
"""

import sys
import sysconfig
from pathlib import Path


def share() -> Path:
    """The folder of what is no Python: where an installer puts a package's data.

    That is the environment's own folder, but /usr/local for Debian's Python, and the user's with `pip install --user`.
    """
    own = Path(sys.prefix) / "share" / "bettong"
    if (own / "jars").is_dir():
        return own
    user = sysconfig.get_path("data", sysconfig.get_preferred_scheme("user"))
    others = [Path(each) / "share" / "bettong" for each in (sysconfig.get_path("data"), user)]
    return next((folder for folder in others if (folder / "jars").is_dir()), own)


SHARE = share()
BROKER_JARS = SHARE / "jars" / "broker"
# Of Spark's Kafka connector.
CONNECTOR_JARS = SHARE / "jars" / "connector"
