"""Errors of file systems are classified."""

import errno

import aiohttp
import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)
from s3fs.errors import translate_boto_error

from bettong.edges.object_store.faults import cause_and_remedy, is_missing_object, is_transient, reason_of


def of_s3(code: str, status: int) -> OSError:
    """The error that s3fs raises for an answer of S3."""
    response = {
        "Error": {"Code": code, "Message": f"it says {code}"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    found = translate_boto_error(ClientError(response, "PutObject"))
    assert isinstance(found, OSError)
    return found


def of_sftp(name: str, base: type[Exception], text: str) -> Exception:
    """An error of paramiko, which is not installed here."""
    made: Exception = type(name, (base,), {"__module__": "paramiko.ssh_exception"})(text)
    return made


DROPPED = of_sftp("SSHException", Exception, "Server connection dropped: ")


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        EOFError(),
        OSError("Socket is closed"),
        DROPPED,
        of_sftp("NoValidConnectionsError", OSError, "Unable to connect to port 22"),
        ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
        OSError(errno.EHOSTUNREACH, "no route"),
        EndpointConnectionError(endpoint_url="http://a"),
        ConnectTimeoutError(endpoint_url="http://a"),
        ReadTimeoutError(endpoint_url="http://a"),
        aiohttp.ClientPayloadError("half of it"),
        of_s3("SlowDown", 503),
        of_s3("InternalError", 500),
        of_s3("SomethingNew", 503),
        of_s3("RequestTimeout", 408),
    ],
    ids=repr,
)
def test_errors_of_unavailable_or_busy_servers_are_transient(error: Exception) -> None:
    assert is_transient(error)
    assert "does not answer; is it reachable" in cause_and_remedy(error)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (of_s3("AccessDenied", 403), "refuses these credentials"),
        (of_s3("SignatureDoesNotMatch", 403), "refuses these credentials"),
        (NoCredentialsError(), "refuses these credentials"),
        (of_s3("NoSuchBucket", 404), "does not exist; make the bucket"),
        (of_s3("EntityTooLarge", 400), "refused; is BETTONG_SNAPSHOTS right"),
        (of_s3("SomethingNew", 400), "refused; is BETTONG_SNAPSHOTS right"),
        (ParamValidationError(report="a bucket's name"), "refused; is BETTONG_SNAPSHOTS right"),
        (of_sftp("BadHostKeyException", type(DROPPED), "Host key does not match"), "Host key does not match"),
        (OSError(errno.ENOSPC, "no space left"), "refused; is BETTONG_SNAPSHOTS right"),
        (NotImplementedError(), "NotImplementedError"),
    ],
    ids=repr,
)
def test_refusals_are_not_transient_and_name_the_remedy(error: Exception, said: str) -> None:
    assert not is_transient(error)
    assert said in cause_and_remedy(error)


def test_a_missing_object_is_told_from_a_missing_bucket() -> None:
    missing = [FileNotFoundError("a/b"), of_s3("NoSuchKey", 404), of_s3("404", 404)]
    assert all(isinstance(each, FileNotFoundError) and is_missing_object(each) for each in missing)
    bucket = of_s3("NoSuchBucket", 404)
    assert isinstance(bucket, FileNotFoundError)
    assert not is_missing_object(bucket)


def test_a_reason_is_one_line_of_bounded_length_without_passwords() -> None:
    assert (
        reason_of(OSError("at http://id:secret@host:9000/bucket\n  and more"))
        == "at http://host:9000/bucket and more"
    )
    assert len(reason_of(OSError("x" * 10_000))) == 300
    assert reason_of(TimeoutError()) == "TimeoutError"
