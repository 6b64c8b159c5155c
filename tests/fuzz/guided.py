"""As `child`, led by coverage: atheris (libFuzzer) keeps inputs that reach new code, and changes those.

`python -m tests.fuzz.guided NAME,NAME FILE SEED SECONDS`. Prints and ends as a child does. libFuzzer ends its process,
so each parser has a fork of one that has imported all: to import what atheris sees takes it longer than CI feeds a
parser. Only what is Python can be seen from inside; what Arrow, protobuf and numpy compiled is reached by chance, as in
`child`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

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
    "bettong.worker.state.pane_links",
    "bettong.worker.state.pane_pool",
    "bettong.worker.windows.pane_kernels",
    "bettong.worker.windows.session_kernels",
)
# Parsers, and what they are made of.
_SEEN = (
    "bettong.schema.json_columns",
    "bettong.schema.json_objects",
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
    from tests.fuzz.child import CLOCK_TIMES_MAX, Recorder, cpu_s, left_behind, limit_input, limit_memory
    from tests.fuzz.harness import CORPUS, INPUT_BYTES_MAX, Harness
    from tests.fuzz.registry import HARNESSES


def feed(harness: Harness, in_flight: Path, *, seed: int, seconds: float) -> NoReturn:
    """Ends the process; the count is left behind in the file."""
    for data in harness.corpus():
        harness.read(data)
    words = in_flight.with_suffix(f".{harness.name}.words")
    quoted = ("".join(f"\\x{byte:02x}" for byte in word) for word in harness.words)
    words.write_text("".join(f'"{word}"\n' for word in quoted))
    found = in_flight.with_suffix(f".{harness.name}.corpus")
    found.mkdir()
    options = {
        "seed": seed % 2**31 or 1,
        # By the clock, in case that a parser waits; `read` goes by the CPU.
        "max_total_time": max(1, round(seconds)) * CLOCK_TIMES_MAX,
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
    with Recorder(in_flight) as recorder:
        end = cpu_s() + seconds

        def read(data: bytes) -> None:
            if cpu_s() > end:
                os._exit(0)
            recorder.note(data)
            limit_input()
            harness.read(data)

        reported = [f"-{option}={value}" for option, value in options.items()]
        atheris.Setup([sys.argv[0], *reported, str(found), str(CORPUS / harness.name)], read)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        atheris.Fuzz()
    os._exit(0)


def main(arguments: list[str]) -> int:
    """NAMES FILE SEED SECONDS (for each)."""
    names, in_flight, seed, seconds = arguments
    for name in names.split(","):
        child = os.fork()
        if child == 0:
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # atheris says there what was raised
            feed(HARNESSES[name], Path(in_flight), seed=int(seed), seconds=float(seconds))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code:
            print(f"{name} ended with {code}", file=sys.stderr)  # noqa: T201
            return 1
        print(left_behind(Path(in_flight))[0], flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
