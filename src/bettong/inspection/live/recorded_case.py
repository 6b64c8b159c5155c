"""Messages that clients have sent, as a test to paste."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from bettong.application.application import Application
from bettong.application.plan import Plan, Stage
from bettong.inspection.live.source_logs import source_records, with_joins
from bettong.inspection.live.stored_references import StoredReferences
from bettong.inspection.locations import Locations
from bettong.schema.key_types import KeyValue
from bettong.testing import case_from
from bettong.testing.logged import with_tables
from bettong.testing.pasted_test import case_test


def recorded_case(
    app: Application,
    plan: Plan,
    stages: Iterable[Stage],
    where: Locations,
    *,
    key: KeyValue | None = None,
    span: tuple[datetime | None, datetime | None] = (None, None),
) -> str:
    """A test of all messages in the logs of these stages, which clients feed; or those of one key, or of a time.

    Raises LogError, StoreError, and another BettongError for a log that the application cannot read.
    """
    logged = source_records(plan, with_joins(plan, stages), where, key)
    records = with_tables(plan, logged, span, StoredReferences(plan.application, where))
    return case_test(app, case_from(app, records, key=key, span=span))
