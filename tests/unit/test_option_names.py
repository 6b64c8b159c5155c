"""A connection's options, as librdkafka takes them: each that we translate is one that it knows."""

import pytest
from confluent_kafka import Consumer

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
    options.check()
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


def test_options_without_a_counterpart_are_refused_by_name_and_no_value_is_reported() -> None:
    options = ClientOptions(
        "partner", {"bootstrap_servers": "h:1", "socks5_proxy": "secret", "max_poll_records": 7}
    )
    with pytest.raises(SettingsError, match=r"'partner'.*'max_poll_records', 'socks5_proxy'") as raised:
        options.check()
    assert "secret" not in str(raised.value)
