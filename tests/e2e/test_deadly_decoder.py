"""Messages that kill the sender, in a suite as users run it: it goes on for as long as each death leads further."""

from pathlib import Path

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.client import Sender
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from bettong.local.supervision import DEATHS_MAX
from tests.waiting import eventually

APPLICATION = """
import os
from dataclasses import dataclass
import bettong

@dataclass
class Line:
    text: str

def read(row: bytes) -> Line:
    if row.startswith(b"poison"):
        os.kill(os.getpid(), 9)
    return Line(row.decode())

app = bettong.Application("fragile")
app.source("lines", schema=Line, key="text", decoder=bettong.each(read)).sink("all-lines")
"""
# Two deaths for the first; four for the other, and then it is refused as a whole. A start takes 1.7 s of CPU: so there
# is but one death more in all than the suite answers where none leads further.
FRAMES = (
    ["a", "poison-1", "b"],
    ["poison-2", "poison-3", "poison-4", "c"],
    ["d"],
)
REFUSED = 5


def test_a_sender_that_gets_past_what_it_died_of_is_started_again_however_often(tmp_path: Path) -> None:
    program, kept = tmp_path / "app.py", tmp_path / "kept"
    program.write_text(APPLICATION)
    options = SuiteOptions(
        application=str(program), partitions=2, keep=kept, settings={"spark_master": "local[1]"}
    )
    with Suite(options) as suite:
        with Sender(suite.record.sender, "lines", "feed", reconnect_s=120) as sender:
            for frame in FRAMES:
                sender.send_rows([text.encode() for text in frame])
            sender.flush(180)
            assert sender.dead_letters == REFUSED
        assert not suite.given_up
        assert suite.record.services["sender"].restarts == 6 > DEATHS_MAX
        eventually(
            lambda: end_well(command_line, ["status", "--dir", str(kept)], name="bettong") == 0, seconds=60
        )
