"""The address at which each process of a suite serves Prometheus metrics: two processes cannot share one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bettong.config.endpoints import listening
from bettong.config.service import PREFIX
from bettong.errors import SettingsError
from bettong.local.addresses import free_ports, is_free, reserve

SETTING = "metrics_listen"
_PORT_MAX = 65_535


def metrics_addresses(
    settings: Mapping[str, str], environment: Mapping[str, str], names: Sequence[str]
) -> dict[str, str]:
    """An address for each of these processes; empty when no address is set.

    Ports are consecutive, from the one that is set, in the order of `names`; with port 0 they are free ones. Raises
    SettingsError for an invalid address, and for a port on which something listens.
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
        reserve(ports)
    return addresses
