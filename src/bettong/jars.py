"""The paths of jars, and of other data beside Python's packages, in this environment.

The package bettong-jars installs both folders, `make setup` fills them (deploy/jars); images have only the connector's.
"""

import sys
import sysconfig
from pathlib import Path


def share() -> Path:
    """The folder into which an installer puts a package's data files.

    It is in the environment, but in /usr/local for Debian's Python, and in the user's with `pip install --user`.
    """
    own = Path(sys.prefix) / "share" / "bettong"
    if (own / "jars").is_dir():
        return own
    user = sysconfig.get_path("data", sysconfig.get_preferred_scheme("user"))
    others = [Path(each) / "share" / "bettong" for each in (sysconfig.get_path("data"), user)]
    return next((folder for folder in others if (folder / "jars").is_dir()), own)


SHARE = share()
BROKER_JARS = SHARE / "jars" / "broker"
# The jars of Spark's Kafka connector.
CONNECTOR_JARS = SHARE / "jars" / "connector"
