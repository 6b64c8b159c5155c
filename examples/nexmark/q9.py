"""Nexmark 9: the winning bid of each auction. See winning.py."""

import bettong
from winning import winning_bids

app = bettong.Application("nexmark-q9")
winning_bids(app).sink("winning-bids")
