"""Nexmark as the peers run it: the queries of examples/nexmark, whose modules can be imported from here on."""

import sys
from pathlib import Path

SITE = Path(__file__).resolve().parents[3] / "examples" / "nexmark"
if str(SITE) not in sys.path:
    sys.path.append(str(SITE))
