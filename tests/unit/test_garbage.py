"""Python looks for garbage rarely, and skips what a service has loaded; cycles do not pile up for ever."""

import subprocess
import sys

CHILD = """
import gc, weakref
from bettong.garbage import collect_rarely

class Ring:
    def __init__(self):
        self.own = self

collect_rarely()
searches = []
gc.callbacks.append(lambda phase, info: searches.append(info["generation"]))
first = weakref.ref(Ring())
kept = [[] for _ in range(90_000)]
print(gc.get_freeze_count() > 10_000, searches, first() is None)
rings = weakref.WeakSet()
for _ in range(200_000):
    rings.add(Ring())
print(len(rings) < 110_000, first() is None)
"""


def test_garbage_is_looked_for_rarely_and_found_in_the_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["True [] False", "True True"]
