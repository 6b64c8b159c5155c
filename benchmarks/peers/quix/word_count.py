"""The word count by Quix Streams. A result is there for a reader when it is committed: ten times a second."""

from quixstreams import State

from benchmarks.peers.quix.application import application, messages, results

app = application("word-count", commit_s=0.1)


def count(word: bytes, state: State) -> bytes:
    """Once more."""
    count = state.get("count", 0) + 1
    state.set("count", count)
    return b"%b %d" % (word, count)


messages(app).apply(count, stateful=True).to_topic(results(app))

if __name__ == "__main__":
    app.run()
