"""A Redis that has lost the version of a reference table that messages see, on the whole suite: stored again."""

import json
from pathlib import Path

import pytest

from bettong.application.plan import plan
from bettong.chaos.spec import OtherProcess
from bettong.chaos.victims import processes
from bettong.client.sender import Sender
from bettong.config.processor import Schedule
from bettong.edges.application_file import load
from bettong.edges.redis_store import RedisStore, RedisVersions
from bettong.services import PROCESSOR
from bettong.snapshots.references import ReferenceStore
from tests.e2e.conftest import RunningSuite, StartSuite
from tests.samples import reference_join
from tests.waiting import eventually

APPLICATION = f"""
{Path(reference_join.__file__).read_text()}
app = app_of(load=lambda: [Price("a", 7)])
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("schedule", Schedule)
def test_the_processor_stores_the_same_table_again_and_goes_on(
    schedule: Schedule, start_suite: StartSuite, tmp_path: Path
) -> None:
    application = tmp_path / "shop.py"
    application.write_text(APPLICATION)
    running = start_suite(str(application), schedule=schedule)
    send(running, 1)
    assert len(running.await_bytes("out", 1).splitlines()) == 1
    running.settle()  # each partition has met the record that names the version
    (driver,) = processes(PROCESSOR.name, running.suite.record.services)
    ((join, source),) = plan(load(str(application))).stages[0].references.items()
    with RedisStore(running.suite.record.redis_connection, running.suite.record.name) as redis:
        store = ReferenceStore(RedisVersions(redis))
        (lost,) = store.versions(source.series(join))
        data = store.load(lost)
        store.remove(lost)
        for worker in processes(OtherProcess.WORKER.value, running.suite.record.services):
            worker.kill()  # those that live have read the table
        send(running, 2)
        eventually(lambda: len(running.all_bytes_of("out").splitlines()) == 2, seconds=120, what="it goes on")
        assert store.load(lost) == data
    assert [json.loads(line) for line in sorted(running.all_bytes_of("out").splitlines())] == [
        {"number": number, "cents": 7} for number in (1, 2)
    ]
    assert processes(PROCESSOR.name, running.suite.record.services) == [driver], "it has not ended"


def send(running: RunningSuite, number: int) -> None:
    with Sender(running.sender, "orders") as sender:
        sender.send_columns({"number": [number], "sku": ["a"], "account": ["x"]})
        sender.flush(60)
