"""Tumbling windows by Bettong, from topic to topic."""

from datetime import timedelta

import bettong
from benchmarks.peers.bettong.windows import counted
from benchmarks.peers.events import WINDOW_MS

app = counted("tumbling", bettong.tumbling(timedelta(milliseconds=WINDOW_MS)))
