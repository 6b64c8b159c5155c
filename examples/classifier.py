"""A model of scikit-learn over whole frames: readings of machines in, what the model says of each out.

    pip install scikit-learn
    bettong up examples/classifier.py
    bettong send readings examples/data/classifier/readings.csv
    bettong tail verdicts

The model is trained when the application is loaded, in each of its processes, from one seed: so it is the same one
everywhere. A tree compares numbers and adds nothing up: so what it says of a row does not depend on the rows beside
it, which is what a vectorized function promises.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import bettong
from bettong import Width

SEED = 7
VERDICTS = np.array([b"fine", b"worn", b"broken"])


@dataclass(slots=True)
class Reading:
    """How fast a machine shakes, mm/s, and how hot it is, degrees Celsius."""

    machine: Annotated[str, Width(8)]
    vibration: float
    heat: float


@dataclass(slots=True)
class Verdict:
    """What the model takes the machine for, and how sure it is."""

    machine: Annotated[str, Width(8)]
    verdict: Annotated[str, Width(6)]
    sure: float


def trained() -> Any:
    """A tree that has seen 300 machines, 100 of each verdict, around three points."""
    chance = np.random.default_rng(SEED)
    around = np.repeat([[2.0, 50.0], [5.0, 65.0], [9.0, 90.0]], 100, axis=0)
    features = around + chance.normal(size=around.shape) * [1.0, 6.0]
    model = DecisionTreeClassifier(min_samples_leaf=10, random_state=SEED)
    return model.fit(features, np.repeat(np.arange(3), 100))


MODEL = trained()


@bettong.vectorized
def classify(reading: Reading) -> Verdict:
    """One call of the model for all readings of a frame. A frame without any is no input for it."""
    features = np.column_stack([reading.vibration, reading.heat])
    shares = MODEL.predict_proba(features) if len(features) else np.empty((0, 3))
    verdict: Any = VERDICTS[shares.argmax(axis=1)]
    return Verdict(reading.machine, verdict, shares.max(axis=1, initial=0))


app = bettong.Application("classifier")
app.source("readings", schema=Reading, key="machine").map(classify).sink("verdicts")
