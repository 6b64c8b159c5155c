"""Authorization: what each token permits. Pure; `bettong.edges.grpc_server` applies it.

    [feed]                                 # the holder's name, which logs and refusals show, never the token
    sha256 = "9f86d081884c7d65..."         # of the token; a list of two while one replaces the other
    write = ["orders/feed-*", "nbbo/*"]    # source/stream
    read = ["rejected"]                    # sinks
    console = true                         # the console's page: states, messages and dead letters among them
    change = true                          # with it: what a console with --allow-changes can change

`*` stands for any characters, also none, but never for the slash. What is not listed is not allowed.
"""

import hashlib
import hmac
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

# A token is random, so its plain SHA-256 reveals nothing of it. This is longer than anybody needs.
TOKEN_CHARACTERS_MAX = 1024

_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
# fnmatch also supports ? and []; one kind of pattern is enough.
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
    """Permission to see the console's page, and everything that it shows."""

    def __str__(self) -> str:
        return "see the console"


@dataclass(frozen=True, slots=True)
class ChangeFromConsole:
    """Permission to make the changes that the console's page offers; it includes seeing the page."""

    def __str__(self) -> str:
        return "change from the console"


Permission = Write | Read | ListSources | SeeConsole | ChangeFromConsole


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """The holder of a token, and its permissions."""

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
                # Part by part: a slash in a stream's name must not match another pattern's source.
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
    """All holders of tokens."""

    def __init__(self, holders: tuple[TokenHolder, ...]) -> None:
        self._holders = holders

    def holder(self, token: str | None) -> TokenHolder | None:
        """The token's holder; None for an unknown token. Takes the same time for all tokens of a length."""
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
    """A token's SHA-256 in hexadecimal, as in the file."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def parse(text: str) -> Grants:
    """The grants of a file. Raises ValueError that lists every fault and quotes no value: it may be a token."""
    try:
        entries = _ENTRIES.validate_python(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not TOML: {error}") from None
    except RecursionError:
        raise ValueError("not TOML: nested too deeply") from None
    except ValidationError as error:
        raise ValueError("; ".join(sorted({_fault(each["loc"]) for each in error.errors()}))) from None
    if not entries:
        # An interrupted write leaves an empty file.
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
        raise ValueError("one sha256 occurs twice; each token has one holder")
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
