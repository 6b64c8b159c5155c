"""Classifies errors of file systems: whether they are transient, and the remedy. Pure.

The clients that fsspec uses (botocore, aiohttp, paramiko) are optional packages, so their errors are recognised by
name.
"""

import errno
import re

# Errors of a server that is unavailable, slow or overloaded.
_PASSING_NAMES = frozenset(
    {
        "aiohttp.client_exceptions.ClientError",
        "aiohttp.http_exceptions.HttpProcessingError",
        "botocore.exceptions.ConnectionError",
        "botocore.exceptions.HTTPClientError",
        "paramiko.ssh_exception.NoValidConnectionsError",
    }
)
# Its subclasses are refusals.
_PASSING_EXACTLY = "paramiko.ssh_exception.SSHException"
# paramiko's OSError without a number, where the server closed the connection.
_PASSING_TEXT = "Socket is closed"
_PASSING_ERRNOS = frozenset(
    {errno.EBUSY, errno.EAGAIN, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}
)
_PASSING_STATUSES = frozenset({408, 429, 500, 502, 503, 504})

_CREDENTIAL_NAMES = frozenset(
    {
        "botocore.exceptions.CredentialRetrievalError",
        "botocore.exceptions.NoCredentialsError",
        "botocore.exceptions.PartialCredentialsError",
        "botocore.exceptions.ProfileNotFound",
        "botocore.exceptions.TokenRetrievalError",
    }
)

_USER = re.compile(r"//[^/@\s]*@")
_REASON_CHARACTERS_MAX = 300


def is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed."""
    status = _answer(error)[1]
    if status is not None:
        return status in _PASSING_STATUSES
    if isinstance(error, OSError) and (error.errno in _PASSING_ERRNOS or str(error) == _PASSING_TEXT):
        return True
    if isinstance(error, TimeoutError | ConnectionError | EOFError):
        return True
    return _is(error, _PASSING_NAMES) or _name(type(error)) == _PASSING_EXACTLY


def is_missing_object(error: FileNotFoundError) -> bool:
    """Whether only the object is missing, not its bucket."""
    return _answer(error)[0] != "NoSuchBucket"


def cause_and_remedy(error: BaseException) -> str:
    """The cause and the remedy, to follow the name of the store."""
    reason = reason_of(error)
    if isinstance(error, FileNotFoundError):
        return f"does not exist; make the bucket, or correct BETTONG_SNAPSHOTS ({reason})"
    if isinstance(error, PermissionError) or _is(error, _CREDENTIAL_NAMES):
        return (
            "refuses these credentials; they come from the environment (for S3, AWS_ACCESS_KEY_ID and"
            f" AWS_SECRET_ACCESS_KEY) and must allow to list, read, write and delete ({reason})"
        )
    if is_transient(error):
        return (
            f"does not answer; is it reachable, and its address right (for S3, AWS_ENDPOINT_URL)? ({reason})"
        )
    return f"refused; is BETTONG_SNAPSHOTS right, and may objects be written there? ({reason})"


def reason_of(error: BaseException) -> str:
    """An error's text in one line of bounded length, without user names and passwords of URLs."""
    text = " ".join(str(error).split()) or type(error).__name__
    return _USER.sub("//", text)[:_REASON_CHARACTERS_MAX]


def _is(error: BaseException, names: frozenset[str]) -> bool:
    return any(_name(kind) in names for kind in type(error).__mro__)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _answer(error: BaseException) -> tuple[str | None, int | None]:
    """S3's error code and the HTTP status, from the botocore error that caused s3fs's error."""
    response = getattr(error.__cause__, "response", None)
    if not isinstance(response, dict):
        return None, None
    return response.get("Error", {}).get("Code"), response.get("ResponseMetadata", {}).get("HTTPStatusCode")
