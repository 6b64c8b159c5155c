"""The pages that the code decides say what the code says."""

from pathlib import Path

import pytest

from docs.render import pages


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_a_rendered_page_is_up_to_date(path: Path) -> None:
    assert path.read_text() == pages()[path], f"{path.name} differs from the code; run `make docs`"
