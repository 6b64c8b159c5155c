"""As `child`, led by coverage: atheris (libFuzzer) keeps inputs that reach new code, and changes those.

`python -m tests.fuzz.guided NAME FILE SEED SECONDS`. Ends as a child does; FILE has the count. Only what is Python can
be seen from inside; what Arrow, protobuf and numpy compiled is reached by chance, as in `child`.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped]

# What Numba compiles, which does not read changed byte code: atheris goes by the first part of a name.
_COMPILED = (
    "bettong.routing",
    "bettong.worker.kernel",
    "bettong.worker.prefetching",
    "bettong.worker.state.block_bounds",
    "bettong.worker.state.item_tables",
    "bettong.worker.state.kept_pool",
    "bettong.worker.state.key_table",
    "bettong.worker.state.lifetimes",
    "bettong.worker.state.pane_items",
    "bettong.worker.state.pane_pool",
    "bettong.worker.windows.pane_kernels",
)
# Parsers, and what they are made of.
_SEEN = (
    "bettong.schema.layouts",
    "bettong.chaos.spec",
    "bettong.client",
    "bettong.config",
    "bettong.delivery",
    "bettong.frames",
    "bettong.inspection.text",
    "bettong.snapshots",
    "bettong.worker.state",
    "bettong_receiver.formats",
    "bettong_receiver.json_lines",
    "bettong_receiver.positions",
    "bettong_receiver.subscriptions",
    "bettong_sender.batcher",
    "tomllib",
)

with atheris.instrument_imports(include=list(_SEEN), exclude=list(_COMPILED), enable_loader_override=False):
    from tests.fuzz.child import INPUT_S_MAX, Recorder, limit_memory
    from tests.fuzz.harness import CORPUS, INPUT_BYTES_MAX
    from tests.fuzz.registry import HARNESSES


def main(arguments: list[str]) -> None:
    """Does not return: libFuzzer ends the process."""
    name, in_flight, seed, seconds = arguments
    harness = HARNESSES[name]
    for data in harness.corpus():
        harness.read(data)
    words = Path(in_flight).with_suffix(".words")
    quoted = ("".join(f"\\x{byte:02x}" for byte in word) for word in harness.words)
    words.write_text("".join(f'"{word}"\n' for word in quoted))
    found = Path(in_flight).with_suffix(".corpus")
    found.mkdir()
    options = {
        "seed": int(seed) % 2**31 or 1,
        "max_total_time": max(1, round(float(seconds))),
        "max_len": INPUT_BYTES_MAX,
        "timeout": 0,  # ours: a signal that kills
        "rss_limit_mb": 0,  # likewise
        "handle_segv": 0,
        "print_final_stats": 0,
        "verbosity": 0,
        **({"dict": words} if harness.words else {}),  # an empty one ends libFuzzer
        "artifact_prefix": f"{found}/",
    }
    limit_memory()
    with Recorder(Path(in_flight)) as recorder:

        def read(data: bytes) -> None:
            recorder.note(data)
            signal.setitimer(signal.ITIMER_REAL, INPUT_S_MAX)
            harness.read(data)

        reported = [f"-{option}={value}" for option, value in options.items()]
        atheris.Setup([sys.argv[0], *reported, str(found), str(CORPUS / name)], read)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
