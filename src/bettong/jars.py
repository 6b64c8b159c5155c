"""Where jars lie in this environment.

The package bettong-jars brings both folders; `make setup` fills them (deploy/jars); an image has the connector's alone.
"""

import sys
from pathlib import Path

_JARS = Path(sys.prefix) / "share" / "bettong" / "jars"

BROKER_JARS = _JARS / "broker"
# Of Spark's Kafka connector.
CONNECTOR_JARS = _JARS / "connector"
