"""The semantics of windows: which accumulators a message goes into, when a window is over, and what it holds then."""
