"""Addresses in settings."""

from pathlib import Path

import pytest

from bettong.config.endpoints import (
    folder_of,
    listening,
    redis_url,
    servers,
    snapshots_url,
    without_password,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kafka:9092", "kafka:9092"),
        ("a:1, b:2 ,c:3", "a:1,b:2,c:3"),
        ("[::1]:9092,[fe80::2]:9092", "[::1]:9092,[fe80::2]:9092"),
        ("10.0.0.1:65535", "10.0.0.1:65535"),
    ],
)
def test_kafkas_servers_are_hosts_with_ports(text: str, expected: str) -> None:
    assert servers(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        ":9092",
        "a:1,",
        "a:1,,b:2",
        "a:0",
        "a:65536",
        "::1:9092",
        "kafka://a:1",
        "a b:1",
        "a:x",
    ],
)
def test_other_servers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        servers(text)


def test_a_server_listens_on_a_host_and_a_port() -> None:
    assert listening(" 0.0.0.0:7100") == "0.0.0.0:7100"
    assert listening("[::]:7100") == "[::]:7100"
    assert listening("127.0.0.1:0") == "127.0.0.1:0"
    for text in ("7100", ":7100", "a:1,b:2", "a:99999", ""):
        with pytest.raises(ValueError, match="host:port"):
            listening(text)


@pytest.mark.parametrize(
    "url",
    [
        "redis://h",
        "redis://h:1/0",
        "rediss://u:p%40@h:6380/3",
        "unix:///run/redis.sock",
        "redis://[::1]:6379/0",
    ],
)
def test_a_redis_url_is_taken_as_it_is(url: str) -> None:
    assert redis_url(url) == url


@pytest.mark.parametrize(
    "url", ["foo", "h:6379", "http://h:1", "redis://", "redis://h:secret", "unix://", ""]
)
def test_another_url_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ValueError, match="expected redis://") as caught:
        redis_url(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" redis ", "redis"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/a/folder//", "s3://bucket/a/folder"),
        ("file:///var/lib/bettong/", "file:///var/lib/bettong"),
        ("abfs://box@account.dfs.example/folder", "abfs://box@account.dfs.example/folder"),
    ],
)
def test_snapshots_are_in_redis_or_below_a_url(text: str, expected: str) -> None:
    assert snapshots_url(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected redis, file:///folder"),
        ("Redis", "expected redis, file:///folder"),
        ("/var/lib/bettong", "expected redis, file:///folder"),
        ("bucket/folder", "expected redis, file:///folder"),
        ("s3:/bucket", "expected redis, file:///folder"),
        ("s3://bucket/a b", "expected redis, file:///folder"),
        ("s3://bucket/a?versionId=1", "without [?] and #"),
        ("simplecache::s3://bucket", "expected redis, file:///folder"),
        ("s3://", "expected s3://bucket/folder"),
        ("s3:///folder", "expected s3://bucket/folder"),
        ("file://folder/x", "expected a folder from the root on"),
        ("file:///", "expected a folder from the root on"),
        ("redis://127.0.0.1/0", "BETTONG_REDIS has its address"),
        ("http://127.0.0.1:9000/bucket", "AWS_ENDPOINT_URL"),
        ("s3://id:secret@bucket/folder", "expected no password"),
    ],
)
def test_other_urls_of_snapshots_are_refused_and_never_quoted(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        snapshots_url(text)
    assert "secret" not in str(caught.value)


def test_only_a_file_url_has_a_folder() -> None:
    assert folder_of("file:///a%20b/c") == Path("/a b/c")
    assert folder_of("s3://bucket/folder") is None
    assert folder_of("redis") is None


@pytest.mark.parametrize(
    "url",
    [
        "redis://:secret@h:1/0",
        "redis://user:secret@h:1/0",
        "redis://h:1/0?password=secret",
        "unix:///run/redis.sock?db=1&password=secret",
        "rediss://h:1/0?ssl_password=secret",
    ],
)
def test_a_password_in_the_url_of_a_flag_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="all users of this machine can see flags"):
        without_password(url)


@pytest.mark.parametrize("url", ["redis://h:1/0", "redis://user@h:1/0?protocol=3", "", None])
def test_a_url_of_a_flag_without_one_stays_as_it_is(url: str | None) -> None:
    assert without_password(url) == url
