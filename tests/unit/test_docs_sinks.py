"""docs/sinks.md: the section on files by fields says what happens."""

import re
from pathlib import Path
from types import ModuleType

from bettong.schema.schema import schema_of
from bettong.testing import run
from bettong_receiver.connectors.folder_names import folders_by

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sinks.md").read_text()


def test_messages_of_the_page_go_to_the_folder_that_it_shows() -> None:
    section = PAGE[PAGE.index("## Files by fields") : PAGE.index("## Postgres")]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    module = ModuleType("files_by_fields")
    exec(code, vars(module))  # noqa: S102 - our own page
    at = 1_795_662_000 * 10**9
    (sink,) = module.app.sinks
    (filed,) = run(module.app, [("readings", module.Reading("s", 1.0, at))]).outputs["by-hour"]
    fields = [field for field in schema_of(module.Filed).fields if field.name in sink.to.fields]
    folder = folders_by(fields)((filed.day, filed.hour))
    assert f"/{folder}/00003.jsonl" in section
