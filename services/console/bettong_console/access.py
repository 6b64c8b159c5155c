"""Authenticates requests of the console: tokens, browsers' sessions, and the host names that it accepts.

A browser sends its token once, in a form, and gets a cookie that scripts cannot read and that is useless elsewhere:
the id of a session. Programs send `Authorization: Bearer TOKEN` with each request. Both are checked against the
current grants: a removed token ends its sessions with the next request, and open pages within 2 s.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections import OrderedDict
from collections.abc import Callable

from starlette.requests import HTTPConnection

from bettong.config.access import ChangeFromConsole, Grants, SeeConsole

COOKIE = "bettong-session"
# People with one or two browsers; beyond it the least recently used session has to sign in again.
SESSIONS_MAX = 1_000
_LOOPBACK_NAMES = {"localhost", "localhost.localdomain"}


class Access:
    """`grants`: returns the current ones; None where no tokens are required."""

    def __init__(
        self, grants: Callable[[], Grants] | None, *, local: bool, changes_allowed: bool = False
    ) -> None:
        """`local`: the console listens on loopback, and answers only to names of loopback.

        `changes_allowed`: it was started with --allow-changes; tokens must permit changes, too.
        """
        self._changes_allowed = changes_allowed
        self._grants = grants
        self._local = local
        self._sessions: OrderedDict[str, str] = OrderedDict()

    @property
    def asks_for_tokens(self) -> bool:
        """Whether people have to sign in."""
        return self._grants is not None

    def allows(self, request: HTTPConnection) -> bool:
        """Whether the requester may see the console."""
        if self._grants is None:
            return True
        return self._may(self._shown(request))

    def who_changes(self, request: HTTPConnection) -> str | None:
        """The requester's name, if they may make changes here; None for everybody else."""
        if not self._changes_allowed or self._grants is None:
            return None
        holder = self._grants().holder(self._shown(request))
        return holder.name if holder is not None and holder.may(ChangeFromConsole()) else None

    def is_ours(self, request: HTTPConnection) -> bool:
        """Whether the request uses a host name of this console.

        Otherwise a page elsewhere could make its own name resolve to loopback (DNS rebinding), and read data here.
        """
        return not self._local or is_loopback_name(request.headers.get("host", ""))

    def sign_in(self, token: str) -> str | None:
        """The id of a new session; None for a token that may not see the console."""
        if not self._may(token):
            return None
        number = secrets.token_urlsafe(32)
        self._sessions[number] = token
        while len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)
        return number

    def sign_out(self, request: HTTPConnection) -> None:
        """Ends the session of a browser."""
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)

    def _may(self, token: str | None) -> bool:
        holder = self._grants().holder(token) if self._grants is not None else None
        return holder is not None and holder.may(SeeConsole())

    def _shown(self, request: HTTPConnection) -> str | None:
        shown = request.headers.getlist("authorization")
        if shown:
            scheme, _, token = shown[0].partition(" ")
            return token.strip() if len(shown) == 1 and scheme.lower() == "bearer" else None
        number = request.cookies.get(COOKIE, "")
        if number in self._sessions:
            self._sessions.move_to_end(number)
        return self._sessions.get(number)


def is_loopback_name(host: str) -> bool:
    """Whether a Host header, `name` or `name:port`, names this machine's loopback."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.strip("[]").lower()
    if name in _LOOPBACK_NAMES or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
