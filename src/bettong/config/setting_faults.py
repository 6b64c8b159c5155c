"""Texts about faults of settings. Pure."""

import difflib
from collections.abc import Collection, Iterable
from pathlib import Path

from pydantic_core import ErrorDetails

# URLs: they may contain passwords, also where none belongs.
_NEVER_SHOWN = {("redis",), ("snapshots",), ("trace_endpoint",)}
# Names this similar count as misspelt: one letter in eight.
_MISSPELT_MIN = 0.85


def misspelt(variables: Iterable[str], prefix: str, names: Collection[str]) -> list[str]:
    """Variables that are almost a setting's. Others with our prefix are ignored: Kubernetes sets some."""
    faults = []
    for variable in sorted(variables):
        name = variable.removeprefix(prefix)
        if name == variable or name in names:
            continue
        if near := difflib.get_close_matches(name, names, n=1, cutoff=_MISSPELT_MIN):
            faults.append(f"{variable}: there is no such setting; is {prefix}{near[0]} meant?")
    return faults


def no_such_setting(name: str, names: Collection[str]) -> str:
    """A file names a setting that there is not; it is told which one may be meant."""
    plain = name.lower().removeprefix("bettong_")
    near = difflib.get_close_matches(plain, names, n=1, cutoff=0.7)
    meant = (
        f"is {near[0]} meant?" if near else "docs/settings.md lists all, here in lower case without BETTONG_"
    )
    return f"there is no setting {name!r}; {meant}"


def listening_fault(setting: str, address: str, error: OSError | RuntimeError) -> str:
    """A server cannot listen at host:port, the value of a setting."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return (
        f"{setting}: cannot listen on {address}: {reason};"
        " choose another address, or stop the process that listens there"
    )


def tls_faults(certificate: Path | None, key: Path | None, clients: Path | None) -> list[str]:
    """What the files of a server's TLS lack."""
    faults = []
    if (certificate is None) is not (key is None):
        faults.append("BETTONG_TLS_CERTIFICATE and BETTONG_TLS_KEY: give both, or none")
    if clients is not None and certificate is None:
        faults.append("BETTONG_TLS_CLIENTS needs BETTONG_TLS_CERTIFICATE and BETTONG_TLS_KEY")
    return faults


def fault_text(fault: ErrorDetails, prefix: str) -> str:
    """A fault, with the name of the variable."""
    text = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        # A fault of several settings together; its text names them.
        return text
    name = f"{prefix}{'_'.join(str(part) for part in fault['loc']).upper()}"
    shown = fault["type"] != "missing" and fault["loc"] not in _NEVER_SHOWN
    return f"{name}: {text}" + (f" (got {fault['input']!r})" if shown else "")
