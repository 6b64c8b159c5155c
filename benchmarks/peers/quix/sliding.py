"""Sliding windows by Quix Streams, which calls those that begin at fixed distances hopping."""

from benchmarks.peers.events import SIZE_MS, SLIDE_MS
from benchmarks.peers.quix.application import application, values
from benchmarks.peers.quix.windows import count

app = application("sliding")
count(app, values(app).hopping_window(SIZE_MS, SLIDE_MS))

if __name__ == "__main__":
    app.run()
