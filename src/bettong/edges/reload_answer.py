"""The file in which a processor with BETTONG_RELOAD reports the outcome of a change of its code."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

_FILE = "answer.json"
_UNFINISHED = "answer.new"


class ReloadAnswer(BaseModel):
    """The newest answer. Only the processor writes it; it is cumulative, so readers may skip answers."""

    model_config = ConfigDict(frozen=True)

    number: int = Field(description="Grows with each change that was looked at.")
    edition: str = Field(description="The code that runs: a reference for `application_file.load`.")
    refused: str = Field(default="", description="Why the change was not taken up, with the remedy.")
    restarts: dict[str, int] = Field(
        default_factory=dict,
        description="How often each other service was to be started for new code, so far.",
    )

    def write(self, folder: Path) -> None:
        """Replaces the previous answer atomically."""
        (folder / _UNFINISHED).write_text(self.model_dump_json())
        (folder / _UNFINISHED).replace(folder / _FILE)

    @classmethod
    def read(cls, folder: Path) -> ReloadAnswer | None:
        """Reads the newest answer; None before the first."""
        try:
            return cls.model_validate_json((folder / _FILE).read_bytes())
        except FileNotFoundError:
            return None
