"""Where jars lie in this environment. `make setup` fills both folders (deploy/jars), an image the connector's alone."""

import sys
from pathlib import Path

_JARS = Path(sys.prefix) / "share" / "bettong" / "jars"

BROKER_JARS = _JARS / "broker"
# Of Spark's Kafka connector.
CONNECTOR_JARS = _JARS / "connector"
