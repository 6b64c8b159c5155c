"""Settings of clients."""

from pathlib import Path
from typing import Annotated, Self

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from bettong.config.endpoints import collector
from bettong.config.service import PREFIX


class ClientSettings(BaseSettings):
    """Credentials and TLS of clients: `bettong send`, `bettong tail`, and programs that pass no others."""

    model_config = SettingsConfigDict(
        env_prefix=f"{PREFIX}CLIENT_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    ca: Path | None = Field(
        default=None,
        description="PEM file of the authorities that may have signed certificates of senders and receivers; with it,"
        " clients use TLS.",
    )
    certificate: Path | None = Field(
        default=None, description="PEM file of the client's own certificate, if services require one."
    )
    key: Path | None = Field(
        default=None, description="PEM file of that certificate's key, without a password."
    )
    token: SecretStr | None = Field(default=None, description="The client's token.")
    token_file: Path | None = Field(
        default=None, description="File with the client's token instead; read again for each call."
    )
    trace_endpoint: Annotated[str, AfterValidator(collector)] | None = Field(
        default=None,
        description="Collector of OpenTelemetry that gets the client's spans of sampled frames, as"
        " BETTONG_TRACE_ENDPOINT.",
    )
    trace_ratio: Annotated[float, Ge(0), Le(1)] = Field(
        default=0.01, description="The share of frames that is sampled: as the sender's BETTONG_TRACE_RATIO."
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults = []
        if (self.certificate is None) is not (self.key is None):
            faults.append("BETTONG_CLIENT_CERTIFICATE and BETTONG_CLIENT_KEY: give both, or none")
        if self.certificate is not None and self.ca is None:
            faults.append("BETTONG_CLIENT_CERTIFICATE needs BETTONG_CLIENT_CA, without which TLS is not used")
        if self.token is not None and self.token_file is not None:
            faults.append("BETTONG_CLIENT_TOKEN and BETTONG_CLIENT_TOKEN_FILE: give one of them")
        if faults:
            raise ValueError("; ".join(faults))
        return self
