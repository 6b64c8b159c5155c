"""Log lines: one a fact, however long and strange what it quotes is."""

import json
import subprocess
import sys

import pytest

from bettong.config.service import LogFormat
from bettong.logs import VALUE_CHARACTERS_MAX, bound


def test_every_value_is_cut_and_says_how_long_it_was() -> None:
    found = bound(
        None, "", {"event": "refused", "reason": "x" * 4_000_000, "count": 7, "names": ["y" * 5000] * 500}
    )
    assert found["reason"] == "x" * VALUE_CHARACTERS_MAX + "... (4000000 characters)"
    assert found["count"] == 7
    assert len(found["names"]) == 65
    assert found["names"][-1] == "and 436 more"
    assert max(map(len, found["names"])) < VALUE_CHARACTERS_MAX + 50


def test_what_would_begin_a_line_or_speak_to_a_terminal_is_escaped() -> None:
    found = bound(None, "", {"event": "a\nERROR all is lost\x1b[31m\r\u2028b"})
    assert found["event"] == r"a\nERROR all is lost\x1b[31m\r\u2028b"


PROGRAM = """
import logging, sys
from bettong.logs import configure
from bettong.config.reading import read
from bettong.config.sender import SenderSettings
log = configure(read(SenderSettings, {"application": "app.py", "log_format": sys.argv[1]}), "sender")
log.info("session refused", reason="bad\\nline\\x1b[2J" + "z" * 1_000_000)
logging.getLogger("grpc").error("strange: %s", "a\\nb" + "z" * 1_000_000)
"""


@pytest.mark.parametrize("form", LogFormat)
def test_a_service_writes_one_short_line_whatever_it_is_given(form: LogFormat) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, form.value], capture_output=True, text=True, check=True, timeout=60
    )
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) < VALUE_CHARACTERS_MAX + 500
    if form is LogFormat.JSON:
        assert all(json.loads(line).keys() >= {"event", "level", "timestamp"} for line in lines)
