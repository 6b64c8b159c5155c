"""The delivery table in a snapshot."""

from bettong.delivery import DeliveryTable, Gap
from bettong.identifiers import Origin, SequenceNumber
from bettong.v1.snapshot_pb2 import DeliveryTable as StoredDelivery
from bettong.v1.snapshot_pb2 import Heard, Missed


def stored_delivery(table: DeliveryTable) -> StoredDelivery:
    """The table as a snapshot holds it."""
    stored = StoredDelivery(age_ns=table.age_ns, clock_ns=table.clock_ns, behind=table.behind)
    for origin, highest in table.highest.items():
        ended_ns = table.ended_ns.get(origin)
        age_ns = table.heard_ns.get(origin, 0) if ended_ns is None else ended_ns
        stored.heard.append(Heard(origin=origin, highest=highest, age_ns=age_ns, ended=ended_ns is not None))
    for gap in table.gaps.values():
        stored.missed.append(
            Missed(origin=gap.origin, sequence=gap.sequence, previous=gap.previous, age_ns=gap.age_ns)
        )
    return stored


def delivery_of(stored: StoredDelivery) -> DeliveryTable:
    """The table that a snapshot holds."""
    return DeliveryTable(
        highest={Origin(heard.origin): SequenceNumber(heard.highest) for heard in stored.heard},
        heard_ns={Origin(heard.origin): heard.age_ns for heard in stored.heard if not heard.ended},
        ended_ns={Origin(heard.origin): heard.age_ns for heard in stored.heard if heard.ended},
        age_ns=stored.age_ns,
        clock_ns=stored.clock_ns,
        behind=stored.behind,
        gaps={
            Origin(each.origin): Gap(
                Origin(each.origin),
                SequenceNumber(each.sequence),
                SequenceNumber(each.previous),
                each.age_ns,
            )
            for each in stored.missed
        },
    )
