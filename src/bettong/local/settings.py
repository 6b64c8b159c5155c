"""The settings of a suite's services, by their names in `bettong.config`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bettong.config.connection_settings import KafkaConnection, RedisConnection
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.directories import Directories
from bettong.local.options import SuiteOptions
from bettong.local.secrets import Secrets
from bettong.local.services import instances
from bettong.services import SENDER, SERVICES

# The services with a gRPC server, each at a port of its own.
SERVING = [each for each in SERVICES.values() if each.grpc_port is not None]


def settings_of(
    options: SuiteOptions,
    kafka: KafkaConnection,
    redis: RedisConnection,
    own: Secrets,
    directories: Directories,
) -> dict[str, str]:
    """The settings that all services share. Chooses free ports; raises LocalError when there are none."""
    path, colon, chosen = options.application.partition(":")
    *ports, console_port = free_ports(len(SERVING) + 1)
    results = options.results or (directories.root / "results" if directories.kept else None)
    settings = {
        "application": f"{Path(path).resolve()}{colon}{chosen}",
        "kafka": kafka.bootstrap,
        "kafka_security": kafka.security.value,
        "kafka_mechanism": kafka.mechanism.value,
        "kafka_user": kafka.user,
        "kafka_password_file": str(own.kafka),
        "redis": redis.url,
        "redis_password_file": str(own.redis),
        "state_key_file": str(own.state_key),
        # Empty, since the environment may set them for servers elsewhere.
        **dict.fromkeys(("kafka_ca", "kafka_certificate", "kafka_key", "redis_ca", "redis_user"), ""),
        "partitions": str(options.partitions),
        "schedule": options.schedule.value,
        "compiled": str(options.compiled).lower(),
        **{each.listen_setting: f"{LOOPBACK}:{port}" for each, port in zip(SERVING, ports, strict=True)},
        "console_listen": f"{LOOPBACK}:{console_port}",
        "checkpoint": str(directories.root / "checkpoint"),
        "state_dir": str(directories.state),
        "sender_marks": str(directories.root / "scratch" / "marks"),
        # In the suite's own Redis, beside its log: a store elsewhere may hold snapshots of another suite's log.
        "snapshots": "redis",
        **options.settings,
    }
    return settings | ({"receiver_dir": str(results.resolve())} if results is not None else {})


def further_senders(options: SuiteOptions, settings: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The settings of every sender but the first, by name: its own port and marks, and no external systems to read."""
    names = instances(SENDER, options.senders)[1:]
    return {
        name: {
            **settings,
            SENDER.listen_setting: f"{LOOPBACK}:{port}",
            "sender_marks": f"{settings['sender_marks']}-{name}",
            "sender_topics": "none",
        }
        for name, port in zip(names, free_ports(len(names)), strict=True)
    }
