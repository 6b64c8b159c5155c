"""Options are translated to librdkafka's: it knows each name that we produce."""

import pytest
from confluent_kafka import Consumer, Producer

from bettong.edges.external_kafka import ClientOptions
from bettong.errors import SettingsError


def test_a_secured_connection_is_one_to_librdkafka_too() -> None:
    options = ClientOptions(
        "partner",
        {
            "bootstrap_servers": "h:1, h:2",
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "bettong",
            "sasl_plain_password": "secret",
            "ssl_check_hostname": False,
            "fetch_max_wait_ms": 100,
            "client_rack": "a",
        },
    )
    found = options.for_librdkafka()
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "bettong",
        "sasl.password": "secret",
        "ssl.endpoint.identification.algorithm": "none",
        "fetch.wait.max.ms": 100,
        "client.rack": "a",
    }
    Consumer({"group.id": "any", **found}).close()


def test_options_of_who_writes_are_those_of_librdkafka_too() -> None:
    options = ClientOptions(
        "partner",
        {
            "bootstrap_servers": "h:1",
            "compression_type": None,
            "linger_ms": 5,
            "batch_size": 70_000,
            "max_request_size": 2_000_000,
        },
    )
    found = options.for_librdkafka()
    assert found == {
        "compression.type": "none",
        "linger.ms": 5,
        "batch.size": 70_000,
        "message.max.bytes": 2_000_000,
    }
    Producer(found)


def test_options_without_a_counterpart_are_refused_by_name_and_no_value_is_reported() -> None:
    words = "'partner'.*no option 'max_poll_records'; .*no option 'socks5_proxy'"
    with pytest.raises(SettingsError, match=words) as raised:
        ClientOptions(
            "partner", {"bootstrap_servers": "h:1", "socks5_proxy": "secret", "max_poll_records": 7}
        )
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": "secret"}, "'batch_size' is a whole number of at least 1"),
        ({"batch_size": 0}, "'batch_size' is a whole number of at least 1"),
        ({"linger_ms": 2.5}, "'linger_ms' is a whole number of at least 0"),
        ({"max_request_size": True}, "'max_request_size' is a whole number of at least 1000"),
        ({"request_timeout_ms": []}, "'request_timeout_ms' is a whole number of at least 10"),
        ({"compression_type": "secret"}, "'compression_type' is one of gzip, lz4, snappy, zstd"),
        (
            {"compression_type": "secret", "linger_ms": -1, "retries": 3},
            "'compression_type'.*'linger_ms'.*'retries'",
        ),
    ],
)
def test_values_that_cannot_be_are_named_and_not_quoted(options: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words) as raised:
        ClientOptions("partner", {"bootstrap_servers": "h:1", **options})
    assert "secret" not in str(raised.value)
