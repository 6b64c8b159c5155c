"""What a suite is asked to run."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from bettong.settings import Schedule


class SuiteOptions(BaseModel):
    """One application on this machine. Paths are those of the caller's working directory."""

    model_config = ConfigDict(frozen=True)

    application: str = Field(description="Path of a Python file, or path:name.")
    partitions: int = 16
    schedule: Schedule = Schedule.MICRO_BATCH
    compiled: bool = True
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
        description="More settings for all services, by their names in bettong.settings.",
    )
