"""Reads settings from the environment, and reports all faults at once."""

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ValidationError

from bettong.config.client import ClientSettings
from bettong.config.connection_settings import ConnectionSettings
from bettong.config.console import ConsoleSettings
from bettong.config.service import PREFIX, ServiceSettings
from bettong.config.setting_faults import fault_text, misspelt, no_such_setting
from bettong.errors import SettingsError
from bettong.services import SERVICES, ServiceEntry

_Settings = TypeVar("_Settings", bound=ConnectionSettings)


def read(kind: type[_Settings], overrides: Mapping[str, Any] | None = None) -> _Settings:
    """The settings of a service (or of connections) from the environment; `overrides` (flags) take precedence.

    Raises SettingsError that lists every fault at once.
    """
    faults = misspelt(os.environ, PREFIX, _names())
    try:
        found = kind(
            **{key: value for key, value in (overrides or {}).items() if value is not None and value != ""}
        )
    except ValidationError as error:
        faults += [fault_text(each, PREFIX) for each in error.errors()]
    else:
        if not faults:
            return found
    raise SettingsError(f"{len(faults)} setting(s) wrong: {'; '.join(faults)}")


def read_at_start(kind: type[_Settings], overrides: Mapping[str, Any]) -> _Settings:
    """As `read`, for a service that starts: raises SettingsError for a password that cannot be read, too.

    Once it runs it waits for the password: see `edges.kafka_log` and `edges.redis_store`.
    """
    found = read(kind, overrides)
    found.kafka_connection.password()
    found.redis_connection.password()
    return found


def read_client() -> ClientSettings:
    """A client's settings from the environment. Raises SettingsError that lists every fault at once."""
    try:
        return ClientSettings()
    except ValidationError as error:
        faults = [fault_text(each, f"{PREFIX}CLIENT_") for each in error.errors()]
    raise SettingsError(f"{len(faults)} setting(s) wrong: {'; '.join(faults)}")


def settings_class(service: ServiceEntry) -> type[ServiceSettings]:
    """The class of a service's settings."""
    found: type[ServiceSettings] = getattr(import_module(f"bettong.config.{service.name}"), service.settings)
    return found


def _names() -> set[str]:
    """The names of all settings of all services, and of clients."""
    kinds: list[type[ServiceSettings]] = [*map(settings_class, SERVICES.values()), ConsoleSettings]
    names = {name.upper() for kind in kinds for name in kind.model_fields}
    return names | {f"CLIENT_{name.upper()}" for name in ClientSettings.model_fields}


def _check_names(settings: dict[str, str]) -> dict[str, str]:
    names = {name.lower() for name in _names()}
    if unknown := sorted(settings.keys() - names):
        raise ValueError("; ".join(no_such_setting(each, names) for each in unknown))
    return settings


# In a file, for all services: names in lower case, without the prefix. No other name is accepted.
FileSettings = Annotated[dict[str, str], AfterValidator(_check_names)]
