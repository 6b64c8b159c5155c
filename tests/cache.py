"""Where tests keep what takes long to build, once a machine."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Bettong's part of the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bettong"
