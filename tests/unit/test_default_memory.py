"""With default settings, sender and receiver stay below the memory that the chart gives them, whatever clients do.

A sum of the bounds, and of what the tests of each allow beside it: they run with smaller bounds than the defaults.
"""

from typing import Any

import pytest
import yaml
from kubernetes.utils import parse_quantity

from bettong.config.receiver import ReceiverSettings
from bettong.config.sender import SenderSettings
from bettong.edges.grpc_server import OTHER_CALLS_MAX
from bettong_receiver.service import REQUEST_BYTES_MAX, REQUESTS_BYTES_MAX
from tests.integration import test_sender_fairness, test_subscriber_crowds, test_subscriber_stalls
from tests.kubernetes.chart import FOLDER
from tests.unit import test_sender_half_sent

MEGABYTE = 1_000_000
# Without clients: `docs/operations.md`, and the largest of the long runs of faults, which have some.
SENDER_IDLE_BYTES = 250 * MEGABYTE
RECEIVER_IDLE_BYTES = 260 * MEGABYTE
# What a call holds that is not read: a window of HTTP/2, see `bettong_sender.service`.
WINDOW_BYTES = 64 * 1024
# Of a request of a subscriber, while it is parsed, one at a time: of empty positions, which are refused then.
PARSED_TIMES = 24
# Of a subscriber, beside what is counted: its thread, and its own way through the log.
SUBSCRIBER_BYTES = test_subscriber_stalls.OTHER_BYTES // test_subscriber_stalls.STALLED


def default(settings: type[SenderSettings | ReceiverSettings], name: str) -> int:
    found = settings.model_fields[name].default
    assert isinstance(found, int)
    return found


def limit_bytes(workload: str) -> int:
    """What the chart gives a pod by default."""
    values: dict[str, Any] = yaml.safe_load((FOLDER / "values.yaml").read_text())
    return int(parse_quantity(values[workload]["resources"]["memory"]))


def test_frames_are_those_with_which_the_bounds_were_measured() -> None:
    frame_bytes_max = default(SenderSettings, "frame_bytes_max")
    assert frame_bytes_max == test_sender_fairness.FRAME_BYTES_MAX == test_sender_half_sent.FRAME_BYTES_MAX


@pytest.mark.parametrize("workload", ["sender", "topicSender"])
def test_a_sender_has_room_for_all_that_clients_can_make_it_hold(workload: str) -> None:
    most = (
        SENDER_IDLE_BYTES
        + default(SenderSettings, "sender_buffer_bytes_max")
        + default(SenderSettings, "sender_receive_bytes_max")
        + test_sender_half_sent.OVERSHOOT_BYTES  # before the connections are closed
        + (default(SenderSettings, "sender_sessions_max") + OTHER_CALLS_MAX) * WINDOW_BYTES
        + test_sender_fairness.HELD_BYTES_MAX  # the largest frame, while it is split
    )
    assert most < limit_bytes(workload), f"{most / MEGABYTE:.0f} MB"


def test_a_receiver_has_room_for_all_that_clients_can_make_it_hold() -> None:
    most = (
        RECEIVER_IDLE_BYTES
        + default(ReceiverSettings, "receiver_subscribers_bytes_max")
        + default(ReceiverSettings, "receiver_subscribers_max") * SUBSCRIBER_BYTES
        + REQUESTS_BYTES_MAX  # of requests that have come in part
        + test_subscriber_crowds.OVERSHOOT_BYTES  # before their connections are closed
        + PARSED_TIMES * REQUEST_BYTES_MAX
        + OTHER_CALLS_MAX * WINDOW_BYTES
    )
    assert most < limit_bytes("receiver"), f"{most / MEGABYTE:.0f} MB"
