"""Sliding windows by Bettong, from topic to topic."""

from datetime import timedelta

import bettong
from benchmarks.peers.bettong.windows import counted
from benchmarks.peers.events import SIZE_MS, SLIDE_MS

app = counted("sliding", bettong.sliding(timedelta(milliseconds=SIZE_MS), timedelta(milliseconds=SLIDE_MS)))
