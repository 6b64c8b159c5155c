"""Where each process of a suite tells Prometheus its metrics: one address for all would be the first one's alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bettong.config.endpoints import listening
from bettong.config.service import PREFIX
from bettong.errors import SettingsError
from bettong.local.addresses import free_ports, give, is_free

SETTING = "metrics_listen"
_PORT_MAX = 65_535


def metrics_addresses(
    settings: Mapping[str, str], environment: Mapping[str, str], names: Sequence[str]
) -> dict[str, str]:
    """An address for each of these processes, where one is asked for: else none.

    From the one that is given on, a port each, in their order; port 0 stands for free ones. Raises SettingsError for
    what is no address, and for a port on which somebody listens.
    """
    variable = f"{PREFIX}{SETTING.upper()}"
    given = settings.get(SETTING) or environment.get(variable, "")
    if not given:
        return {}
    try:
        host, _, port = listening(given).rpartition(":")
    except ValueError as error:
        raise SettingsError(f"{variable}: {given!r}: {error}") from None
    first = int(port)
    ports = list(range(first, first + len(names))) if first else free_ports(len(names))
    if ports[-1] > _PORT_MAX and first:
        raise SettingsError(
            f"{variable}: {given}: {len(names)} processes need a port each, from there on; choose"
            f" {_PORT_MAX - len(names) + 1} or a lower one"
        )
    addresses = {name: f"{host}:{each}" for name, each in zip(names, ports, strict=True)}
    if first:
        for name, each in zip(names, ports, strict=True):
            if not is_free(each):
                raise SettingsError(
                    f"{variable}: {given}: something listens on {addresses[name]}, the port of {name}; choose another"
                    " one, or port 0 for free ones"
                )
        give(ports)
    return addresses
