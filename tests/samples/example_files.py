"""The files of an example in `examples/data`: what is sent to its sources, and what comes out of its sinks."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bettong.application.application import Application
from bettong.application.nodes.source import Source
from bettong.application.plan import plan
from bettong.client.message_files import format_of, portions
from bettong.client.message_input import Wanted
from bettong.edges.application_file import load
from bettong.frames.columns import Columns
from bettong.frames.text import json_line

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DATA = EXAMPLES / "data"
FRAME_BYTES_MAX = 2**20


def applications() -> set[str]:
    """The examples that are applications: their files below `examples`, without `.py`.

    The queries of Nexmark are left out: they have tests of their own.
    """
    files = (file for file in EXAMPLES.rglob("*.py") if file.parent.name != "nexmark")
    return {
        str(file.relative_to(EXAMPLES).with_suffix(""))
        for file in files
        if "\napp = bettong.Application(" in file.read_text()
    }


@dataclass(frozen=True, slots=True)
class ExampleFiles:
    """Of the example of that name: a file a source, named as it; a file of JSON lines a sink, in `expected`."""

    name: str

    @property
    def app(self) -> Application:
        return load(str(EXAMPLES / f"{self.name}.py"))

    def file(self, source: str) -> Path:
        """What is sent to a source."""
        (found,) = (DATA / self.name).glob(f"{source}.*")
        return found

    def rows(self, source: str) -> list[dict[str, Any]]:
        """It, as Python alone reads it: for answers that need nothing of Bettong. Values of CSV files are text."""
        file = self.file(source)
        text = file.read_text()
        if file.suffix == ".csv":
            return list(csv.DictReader(text.splitlines()))
        if file.suffix == ".txt":
            return [{"text": line} for line in text.splitlines()]
        return [json.loads(line) for line in text.splitlines()]

    def inputs(self) -> list[tuple[str, list[Any]]]:
        """It, as `bettong send` reads it, a frame a source: inputs of `bettong.testing`."""
        return [
            (source.name, messages_of(source, self.file(source.name))) for source in plan(self.app).sources
        ]

    def golden_file(self, sink: str) -> Path:
        return DATA / self.name / "expected" / f"{sink}.jsonl"

    def golden(self, sink: str) -> list[str]:
        """The results of a sink, a line each. Between keys there is no order."""
        return self.golden_file(sink).read_text().splitlines()

    def shown(self, sink: str, results: list[Any]) -> list[str]:
        """Results of `bettong.testing` as `bettong tail` shows them."""
        return shown_lines(self.app, sink, results)


def messages_of(source: Source, file: Path) -> list[Any]:
    """The messages of a file that is sent to a source, as `bettong send` reads it."""
    wanted = Wanted(source.schema.arrow, source.decoder is not None, 10_000, FRAME_BYTES_MAX)
    (portion,) = portions(file, format_of(file), wanted)
    if isinstance(portion.body, list):
        return portion.body
    return Columns.of_batch(source.schema, portion.body).messages()


def shown_lines(app: Application, sink: str, results: list[Any]) -> list[str]:
    """Results of a sink of an application as `bettong tail` shows them."""
    (schema,) = {
        output.schema.fingerprint: output.schema
        for stage in plan(app).stages
        for output in stage.outputs
        if output.target.name == sink
    }.values()
    return [json_line(schema, result).decode() for result in results]
