"""All harnesses by name. Whoever adds a parser adds its harness here, and its seeds with `--seeds`."""

from tests.fuzz import of_chart, of_files, of_frames, of_requests, of_states, of_stores
from tests.fuzz.harness import Harness

HARNESSES: dict[str, Harness] = {
    each.name: each
    for each in (
        *of_requests.HARNESSES,
        *of_frames.HARNESSES,
        *of_stores.HARNESSES,
        *of_states.HARNESSES,
        *of_files.HARNESSES,
        *of_chart.HARNESSES,
    )
}
