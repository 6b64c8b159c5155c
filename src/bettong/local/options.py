"""The options of a suite."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from bettong.config.processor import Schedule
from bettong.local.supervision import DEATHS_MAX, WAIT_S_MAX

# Each is a Python process of 120 MB when idle; two suffice to test how several senders interact.
SENDERS_MAX = 4


class Restarts(BaseModel):
    """When the suite restarts a process that died. A test that kills processes allows more deaths than the defaults."""

    model_config = ConfigDict(frozen=True)

    deaths_max: int = Field(
        default=DEATHS_MAX,
        ge=0,
        description="Deaths of one process in a row, without 30 s of rest; at one more it stays down.",
    )
    wait_s_max: float = Field(
        default=WAIT_S_MAX,
        ge=0,
        description="Longest wait before a new start; it doubles from 0.4 s, the first comes at once.",
    )


class SuiteOptions(BaseModel):
    """One application on this machine. Paths are those of the caller's working directory."""

    model_config = ConfigDict(frozen=True)

    application: str = Field(description="Path of a Python file, or path:name.")
    partitions: int = 16
    schedule: Schedule = Schedule.RESIDENT
    compiled: bool = True
    standby: bool = Field(
        default=False, description="A second processor that takes over when the first dies."
    )
    reload: bool = Field(
        default=False, description="The application's code is taken up anew when its files change."
    )
    senders: int = Field(
        default=1,
        ge=1,
        le=SENDERS_MAX,
        description="Senders, each with an address of its own. The first alone reads external systems.",
    )
    console: bool = Field(
        default=False,
        description="A page that shows what runs, at a port of loopback; where it is installed.",
    )
    keep: Path | None = Field(
        default=None, description="Folder for everything, kept at the end; the next start goes on from it."
    )
    results: Path | None = Field(
        default=None,
        description="Folder of the file sink; by default `results` in `keep`, and no files without it.",
    )
    announce: Path | None = Field(
        default=None,
        description="Folder in which `suite.json` is written too, so that other commands find it there.",
    )
    settings: dict[str, str] = Field(
        default_factory=dict,
        description="More settings for all services, by their names in bettong.config.",
    )
    environment: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description="More environment variables, by service (sender, processor, receiver), of kafka, or, on top, by"
        " instance (sender-2).",
    )
    restarts: Restarts = Restarts()
