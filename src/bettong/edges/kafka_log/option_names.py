"""Translates options of kafka-python to those of librdkafka. Pure.

Most names differ only in dots for underscores. Sources: `DEFAULT_CONFIG` of kafka-python's clients, and
https://docs.confluent.io/platform/current/clients/librdkafka/html/md_CONFIGURATION.html
"""

from bettong.config.connections import Options

_NAMES = {
    "compression_type": "compression.type",
    "fetch_max_wait_ms": "fetch.wait.max.ms",
    "max_request_size": "message.max.bytes",
    "receive_buffer_bytes": "socket.receive.buffer.bytes",
    "request_timeout_ms": "socket.timeout.ms",
    "sasl_kerberos_name": "sasl.kerberos.principal",
    "sasl_plain_password": "sasl.password",
    "sasl_plain_username": "sasl.username",
    "send_buffer_bytes": "socket.send.buffer.bytes",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_ciphers": "ssl.cipher.suites",
    "ssl_crlfile": "ssl.crl.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
}
_SAME = {
    "batch_size",
    "check_crcs",
    "client_id",
    "client_rack",
    "connections_max_idle_ms",
    "fetch_min_bytes",
    "linger_ms",
    "max_partition_fetch_bytes",
    "metadata_max_age_ms",
    "reconnect_backoff_max_ms",
    "reconnect_backoff_ms",
    "retry_backoff_max_ms",
    "retry_backoff_ms",
    "sasl_kerberos_service_name",
    "sasl_mechanism",
    "security_protocol",
}
_HOST_NAMES = "ssl_check_hostname"
_SERVERS = "bootstrap_servers"  # passed to each client separately


def unsupported_by_librdkafka(options: Options) -> list[str]:
    """The options that librdkafka does not have, sorted."""
    return sorted(options.keys() - _NAMES.keys() - _SAME - {_HOST_NAMES, _SERVERS})


def to_librdkafka(options: Options) -> dict[str, object]:
    """The options translated for librdkafka, without the servers and those that it does not have."""
    found: dict[str, object] = {}
    for name, value in options.items():
        if name == _HOST_NAMES:
            found["ssl.endpoint.identification.algorithm"] = "https" if value else "none"
        elif name == "compression_type":
            found[_NAMES[name]] = value or "none"
        elif name in _NAMES:
            found[_NAMES[name]] = value
        elif name in _SAME:
            found[name.replace("_", ".")] = value
    return found
