"""What a suite checks before it starts, and how it reads the exit code of a process that has ended."""

from __future__ import annotations

from bettong.config.reading import read_client
from bettong.errors import LocalError, SettingsError
from bettong.local.options import SuiteOptions
from bettong.local.record import find
from bettong.local.server import Server
from bettong.local.services import speaks_tls
from bettong.local.supervision import FINAL_STATUSES, final_error


def final_status(server: Server) -> int:
    """The exit code to report for a process that was given up: its own if no restart mends it, else LocalError's."""
    status = _status(server)
    return status if status is not None and status in FINAL_STATUSES else LocalError.exit_code


def check_start(name: str, server: Server) -> None:
    """Raises when it does not run: the error of its exit code where a restart does not mend it, else LocalError."""
    status = _status(server)
    if server.process is not None and status in FINAL_STATUSES:
        last = " ".join(server.process.tail(1)).removeprefix("bettong: error: ")
        raise final_error(status)(
            f"{name} cannot go on (exit code {status}), everything is stopped: {last} (its log: {server.command.log})"
        )
    server.check()


def check_options(options: SuiteOptions) -> None:
    """Raises LocalError where this suite would disturb another one, or mix its results with another's.

    Raises SettingsError where its services could not be reached: they have a certificate, and clients no authority.
    """
    if speaks_tls(options.settings) and read_client().ca is None:
        raise SettingsError(
            "BETTONG_TLS_CERTIFICATE is set, and BETTONG_CLIENT_CA is not: services on this machine would speak TLS,"
            " their clients would not; set BETTONG_CLIENT_CA to the certificate's authority, or leave out both"
        )
    results, announce = options.results, options.announce
    if options.keep is None and results is not None and results.is_dir() and any(results.iterdir()):
        raise LocalError(f"{results} holds files already: remove them, or keep the data too with --keep DIR")
    other = find(announce) if announce is not None else None
    if other is not None:
        raise LocalError(
            f"{other.name} runs here already (process {other.owner.pid}): end it with `bettong down` or Ctrl-C,"
            " or give this one a folder of its own with --keep DIR"
        )


def _status(server: Server) -> int | None:
    ending = server.process.ending if server.process is not None else None
    return ending.status if ending is not None else None
