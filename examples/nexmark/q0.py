"""Nexmark 0: bids as they are. What it costs to do nothing."""

import bettong
from model import bids

app = bettong.Application("nexmark-q0")
bids(app).sink("all-bids")
