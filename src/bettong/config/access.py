"""Who may do what: the rule of tokens. Pure; what asks it is `bettong.edges.grpc_server`.

    [feed]                                 # a holder's name: logs and refusals name it, never the token
    sha256 = "9f86d081884c7d65..."         # of the token; a list of two while one replaces the other
    write = ["orders/feed-*", "nbbo/*"]    # source/stream
    read = ["rejected"]                    # sinks
    console = true                         # the console's page: states, messages and dead letters among them
    change = true                          # with it: what a console with --allow-changes can change

`*` stands for any characters, none among them, but never for the slash. What is not named is not allowed.
"""

import hashlib
import hmac
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

# A token is drawn at random, so its plain SHA-256 reveals nothing of it. Nobody needs a longer one.
TOKEN_CHARACTERS_MAX = 1024

_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
# fnmatch knows ? and [] too; two patterns for one thing would be one too many.
_STREAMS = Annotated[str, Field(pattern=r"^[^/?\[\]\s]+/[^/?\[\]\s]+$")]
_SINKS = Annotated[str, Field(pattern=r"^[^/?\[\]\s]+$")]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    sha256: _Sha256 | Annotated[list[_Sha256], Field(min_length=1)]
    write: list[_STREAMS] = []
    read: list[_SINKS] = []
    console: bool = False
    change: bool = False


_ENTRIES = TypeAdapter(dict[str, _Entry])


@dataclass(frozen=True, slots=True)
class Write:
    """Permission to feed a stream of a source."""

    source: str
    stream: str

    def __str__(self) -> str:
        return f"write {self.source}/{self.stream}"


@dataclass(frozen=True, slots=True)
class Read:
    """Permission to read a sink."""

    sink: str

    def __str__(self) -> str:
        return f"read sink {self.sink}"


@dataclass(frozen=True, slots=True)
class ListSources:
    """Permission to list the sources; every holder of a token has it."""


@dataclass(frozen=True, slots=True)
class SeeConsole:
    """Permission to see the console's page, and all that it shows."""

    def __str__(self) -> str:
        return "see the console"


@dataclass(frozen=True, slots=True)
class ChangeFromConsole:
    """Permission to change what the console's page can change; whoever has it sees the page, too."""

    def __str__(self) -> str:
        return "change from the console"


Permission = Write | Read | ListSources | SeeConsole | ChangeFromConsole


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """Who holds a token, and what it lets them do."""

    name: str
    digests: tuple[str, ...]
    write: tuple[str, ...]
    read: tuple[str, ...]
    console: bool = False
    change: bool = False

    def may(self, permission: Permission) -> bool:
        """Whether the token grants the permission."""
        match permission:
            case Write(source, stream):
                # Part by part: a stream's name that holds a slash must not reach into another pattern's source.
                return any(
                    fnmatchcase(source, of) and fnmatchcase(stream, name)
                    for of, name in (pattern.split("/") for pattern in self.write)
                )
            case Read(sink):
                return any(fnmatchcase(sink, pattern) for pattern in self.read)
            case SeeConsole():
                return self.console
            case ChangeFromConsole():
                return self.console and self.change
            case ListSources():
                return True


class Grants:
    """All holders."""

    def __init__(self, holders: tuple[TokenHolder, ...]) -> None:
        self._holders = holders

    def holder(self, token: str | None) -> TokenHolder | None:
        """Who holds the token; None for one that nobody holds. Takes as long for any token of a length."""
        if not token or len(token) > TOKEN_CHARACTERS_MAX:
            return None
        given = digest(token)
        found = [
            holder
            for holder in self._holders
            for known in holder.digests
            if hmac.compare_digest(given, known)
        ]
        return found[0] if found else None


def digest(token: str) -> str:
    """What stands in the file for a token: its SHA-256, in hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def parse(text: str) -> Grants:
    """The grants of a file. Raises ValueError that lists every fault and quotes no value: it may be a token."""
    try:
        entries = _ENTRIES.validate_python(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"no TOML: {error}") from None
    except RecursionError:
        raise ValueError("no TOML: nested too deeply") from None
    except ValidationError as error:
        raise ValueError("; ".join(sorted({_fault(each["loc"]) for each in error.errors()}))) from None
    if not entries:
        # An empty file is what a write that was cut off leaves behind.
        raise ValueError("holds no token; expected [name] with sha256, and write, read, console or change")
    holders = tuple(
        TokenHolder(
            name,
            (entry.sha256,) if isinstance(entry.sha256, str) else tuple(entry.sha256),
            tuple(entry.write),
            tuple(entry.read),
            entry.console,
            entry.change,
        )
        for name, entry in entries.items()
    )
    digests = [each for holder in holders for each in holder.digests]
    if len(set(digests)) < len(digests):
        raise ValueError("one sha256 stands twice; each token has one holder")
    return Grants(holders)


_EXPECTED = {
    "sha256": "expected the token's SHA-256, 64 digits of 0-9a-f, or a list of such",
    "write": 'expected a list of "source/stream", with * for any characters',
    "read": "expected a list of sinks, with * for any characters",
    "console": "expected true or false",
    "change": "expected true or false",
}


def _fault(path: tuple[int | str, ...]) -> str:
    holder, *rest = (str(part) for part in path)
    key = rest[0] if rest else ""
    return f"[{holder}] {key}: {_EXPECTED.get(key, 'expected sha256, write, read, console and change, nothing else')}"
