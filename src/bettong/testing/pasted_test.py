"""Writes a case as a test: text that runs as it is."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

from bettong.application.application import Application
from bettong.edges.application_file import MODULE_PREFIX
from bettong.testing.inputs import (
    CLIENT,
    ClientFrame,
    ClockStep,
    EndOfStream,
    Moment,
    Reference,
    Step,
    WatermarkInput,
)
from bettong.testing.memory_processor import AtEachRecord
from bettong.testing.source_text import SourceText, list_text
from bettong.testing.variations import Variation

_TESTING = "bettong.testing"
_INDENT = "    "


def comparing_test(app: Application, case: Sequence[Step], variation: Variation) -> str:
    """A test that fails where the outcome of a case's variation differs from that of the case."""
    text = SourceText()
    for name in ("assert_alike", "run"):
        text.import_(_TESTING, name)
    plain, varied = _list(case, text), _list(variation.inputs(case), text)
    name = _name_of(app, text)
    options = "".join(f", {each}" for each in _options(variation, text))
    body = [
        f"expected = run({name}, {plain})",
        f"found = run({name}, {varied}{options})",
        "assert_alike(found, expected)",
    ]
    title = re.sub(r"\W+", "_", variation.what.partition(":")[0])
    return _written(text, name, f"test_results_do_not_depend_on_{title}", body)


def case_test(app: Application, case: Sequence[Step], name: str = "test_recorded_case") -> str:
    """A test that runs a case, with expectations for people to fill in."""
    text = SourceText()
    text.import_(_TESTING, "run")
    inputs = _list(case, text)
    app_name = _name_of(app, text)
    body = [f"outcome = run({app_name}, {inputs})"]
    body += [f"assert outcome.outputs[{sink.name!r}] == []" for sink in app.sinks]
    return _written(text, app_name, name, body)


def input_text(step: Step, text: SourceText) -> str:
    """The text of an input in a test."""
    if isinstance(step, Moment):
        return text.import_(_TESTING, step.value)
    if isinstance(step, ClockStep):
        text.import_(_TESTING, "clock")
        return f"clock({step.step_ns})" if step.at_ns is None else f"clock(at={step.at_ns})"
    if isinstance(step, Reference):
        return f"{text.import_(_TESTING, 'Reference')}({step.join!r}, {text.value(step.table)})"
    if isinstance(step, WatermarkInput | EndOfStream):
        given = [repr(step.source)] if step.source is not None else []
        given += [f"client={step.client!r}"] if step.client is not None else []
        if isinstance(step, EndOfStream):
            return f"{text.import_(_TESTING, 'end_stream')}({', '.join(given)})"
        return f"{text.import_(_TESTING, 'watermark')}({', '.join([str(step.at_ns), *given])})"
    return _frame_text(step, text)


def _frame_text(step: ClientFrame, text: SourceText) -> str:
    messages = [text.value(message) for message in step.messages]
    if step.client != CLIENT:
        text.import_(_TESTING, "frame")
        return f"frame({', '.join([repr(step.source), *messages])}, client={step.client!r})"
    return f"({step.source!r}, {messages[0] if len(messages) == 1 else '[' + ', '.join(messages) + ']'})"


def _list(steps: Iterable[Step], text: SourceText) -> str:
    return list_text((input_text(step, text) for step in steps), _INDENT)


def _options(variation: Variation, text: SourceText) -> list[str]:
    found = []
    if variation.partitions != 1:
        found.append(f"partitions={variation.partitions}")
    if variation.compiled:
        found.append("compiled=True")
    if variation.at_each_record is not None:
        text.import_(_TESTING, AtEachRecord.__name__)
        found.append(f"at_each_record={variation.at_each_record!r}")
    return found


def _name_of(app: Application, text: SourceText) -> str:
    """The application's name where it is a global of a module, that of its messages first; else `app`."""
    found = [
        (module.__name__, name)
        for module in list(sys.modules.values())
        for name, value in list(getattr(module, "__dict__", {}).items())
        if value is app
    ]
    found.sort(key=lambda each: each[0].removeprefix(MODULE_PREFIX) not in text.imports)
    return text.import_(*found[0]) if found else "app"


def _written(text: SourceText, app: str, name: str, body: list[str]) -> str:
    imports = text.import_lines()
    unknown = not any(line.endswith(f" {app}") or f" {app}," in line for line in imports)
    note = ["", "# app = the application"] if unknown else []
    lines = [f"{_INDENT}{line}" for line in body]
    return "\n".join([*imports, *note, "", "", f"def {name}():", *lines, ""])
