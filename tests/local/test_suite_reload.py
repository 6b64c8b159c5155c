"""`bettong run --reload`: a saved file is what runs, with the states of before; what cannot run changes nothing."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bettong import metrics
from bettong.client.sender import Sender
from bettong.client.subscriber import Subscriber
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import ClientError
from tests.local.test_suite import Running, gone, leftovers, start
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# With a load of 25 beside it took 2 to 3 s.
NEW_CODE_S = 20.0
RESULTS_S = 60.0

RULE = "def label() -> str:\n    return {label!r}\n"
APPLICATION = """
from dataclasses import dataclass

import bettong
from reload_rule import label


@dataclass
class Payment:
    account: str
    amount: float


@dataclass
class Total:
    account: str
    total: float
    label: str


@dataclass
class Account:
    total: float = 0.0


def add(payment: Payment, account: Account) -> Total:
    account.total += payment.amount
    return Total(payment.account, account.total, label())


app = bettong.Application("reloaded")
payments = app.source("payments", schema=Payment, key="account")
payments.stateful(add, state=Account).sink("totals")
"""


@dataclass
class Payment:
    account: str
    amount: float


@dataclass
class Reloaded:
    """The suite, its application's files, and the totals that have come out."""

    running: Running
    app: Path
    rule: Path
    totals: list[tuple[float, str]] = field(default_factory=list)

    def save_rule(self, label: str) -> None:
        self.rule.write_text(RULE.format(label=label))

    def pids(self) -> dict[str, int]:
        return {name: each.pid for name, each in self.running.ready().services.items()}

    def await_label(self, label: str, seconds: float = NEW_CODE_S) -> None:
        eventually(
            lambda: bool(self.totals) and self.totals[-1][1] == label,
            seconds=seconds,
            what=lambda: f"a result {label!r}; the suite said {self.running.output()}",
        )

    def lines(self, words: str) -> list[str]:
        return [line for line in self.running.output().splitlines() if words in line]

    def await_refusal(self, why: str) -> str:
        def found() -> str | None:
            return next(
                (
                    line
                    for line in self.lines("the old code runs on until the new code can run: ")
                    if why in line
                ),
                None,
            )

        return eventually(found, seconds=NEW_CODE_S, what=lambda: f"{why}: {self.running.output()}")

    def log(self) -> str:
        """The processor's."""
        return self.running.ready().services["processor"].log.read_text()

    def snapshots(self) -> int:
        """Partitions that have one."""
        record = self.running.ready()
        with RedisStore(record.redis_connection, record.name) as store:
            partitions = LiveMetrics(store).partitions().values()
        return sum(int(each.get(metrics.SNAPSHOT_OFFSET.name, 0)) > 0 for each in partitions)

    def goes_on(self, label: str) -> None:
        """More results, by the code of this label."""
        count = len(self.totals)
        eventually(lambda: len(self.totals) > count + 5, seconds=RESULTS_S)
        assert self.totals[-1][1] == label


@pytest.fixture
def reloaded(tmp_path: Path) -> Iterator[Reloaded]:
    """Payments of 1.0 come in without a pause."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "app.py").write_text(APPLICATION)
    (code / "reload_rule.py").write_text(RULE.format(label="first"))
    running = start(tmp_path / "run", "--reload", application=code / "app.py")
    ending = threading.Event()
    try:
        record = running.ready()
        found = Reloaded(running, code / "app.py", code / "reload_rule.py")

        def send() -> None:
            try:
                with Sender(record.sender, "payments") as sender:
                    while not ending.wait(0.05):
                        sender.send_messages([Payment("ann", 1.0)])
            except ClientError:
                assert ending.wait(60), "the sender went away before the end"

        def read() -> None:
            try:
                for result in Subscriber(record.receiver, "totals", reconnect_s=20.0):
                    for message in map(json.loads, result.messages):
                        found.totals.append((message["total"], message["label"]))
            except ClientError:
                assert ending.wait(60), "the receiver went away before the end"

        threads = [threading.Thread(target=work, daemon=True) for work in (send, read)]
        for thread in threads:
            thread.start()
        yield found
        ending.set()
        for thread in threads:
            thread.join(90)
    finally:
        ending.set()
        running.process.kill()
        running.process.wait()


def test_what_is_saved_runs_with_the_states_of_before_and_what_cannot_run_changes_nothing(
    reloaded: Reloaded, record_property: Callable[[str, object], None]
) -> None:
    reloaded.await_label("first", RESULTS_S)
    pids = reloaded.pids()

    reloaded.save_rule("second")
    saved_s = time.monotonic()
    reloaded.await_label("second")
    record_property("seconds", time.monotonic() - saved_s)

    reloaded.save_rule("third")
    reloaded.save_rule("fourth")
    reloaded.await_label("fourth")

    reloaded.app.write_text(APPLICATION + "this is no Python\n")
    assert "app.py:" in reloaded.await_refusal("SyntaxError: invalid syntax")
    reloaded.goes_on("fourth")

    eventually(lambda: reloaded.snapshots() > 0, seconds=RESULTS_S, what="the state is saved")
    reloaded.app.write_text(
        APPLICATION.replace("total: float = 0.0", "sum: float = 0.0").replace(".total +=", ".sum +=")
    )
    reloaded.await_refusal("computation 'add' has changed")
    reloaded.goes_on("fourth")

    reloaded.app.unlink()
    reloaded.await_refusal("there is no such file")
    reloaded.app.write_text(APPLICATION)
    reloaded.save_rule("fifth")
    reloaded.await_label("fifth")
    assert reloaded.pids() == pids, "nothing was started again"

    reloaded.app.write_text(APPLICATION + 'payments.sink("raw")\n')
    eventually(lambda: reloaded.lines("started again for it: receiver"), seconds=NEW_CODE_S)

    def renewed() -> set[str]:
        now = reloaded.pids()
        return {name for name in pids if now.get(name) != pids[name]}

    eventually(lambda: renewed() == {"receiver"}, seconds=NEW_CODE_S)
    assert next(Subscriber(reloaded.running.ready().receiver, "raw", reconnect_s=20.0)).messages
    assert renewed() == {"receiver"}
    assert not [each for each in reloaded.running.ready().services.values() if each.restarts]

    totals = [total for total, _ in reloaded.totals]
    assert totals == [float(count + 1) for count in range(len(totals))], (
        "no payment is missing, none comes twice"
    )
    assert "Traceback" not in reloaded.running.output()

    family, folders = reloaded.running.family(), reloaded.running.folders()
    taken_up = reloaded.log().count("new code")
    reloaded.save_rule("last")
    eventually(lambda: reloaded.log().count("new code") > taken_up, seconds=NEW_CODE_S, what="it is taken up")
    assert reloaded.running.end(signal.SIGINT) == 130
    assert gone(family)
    assert not [place for place in folders if place.exists()]
    assert not leftovers(reloaded.running.folder)


def test_reloading_and_a_second_processor_do_not_go_together(tmp_path: Path) -> None:
    running = start(tmp_path, "--reload", "--standby")
    assert running.process.wait(RESULTS_S) == 4
    assert "--reload and --standby" in running.output()
