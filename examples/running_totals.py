"""Running totals: votes for letters of the alphabet in, how many each letter has so far out. Compiled.

bettong up examples/running_totals.py
bettong send votes examples/data/running_totals/votes.csv
bettong tail totals
"""

from dataclasses import dataclass
from typing import Annotated

import bettong
from bettong import Width


@dataclass(slots=True)
class Vote:
    """So many votes for a letter."""

    letter: Annotated[str, Width(1)]
    votes: int


@dataclass(slots=True)
class Total:
    """All votes for a letter, up to one of them."""

    letter: Annotated[str, Width(1)]
    total: int


@dataclass(slots=True)
class Letter:
    """What is kept of a letter."""

    total: int = 0


@bettong.compiled
def add(vote: Vote, letter: Letter) -> Total:
    """Adds the votes to those that the letter has."""
    letter.total += vote.votes
    return Total(vote.letter, letter.total)


app = bettong.Application("running-totals")
(app.source("votes", schema=Vote, key="letter").stateful(add, state=Letter, name="count").sink("totals"))
