"""Tumbling windows by Quix Streams."""

from benchmarks.peers.events import WINDOW_MS
from benchmarks.peers.quix.application import application, values
from benchmarks.peers.quix.windows import count

app = application("tumbling")
count(app, values(app).tumbling_window(WINDOW_MS))

if __name__ == "__main__":
    app.run()
