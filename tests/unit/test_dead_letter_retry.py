"""Which dead letters can be sent to their source again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from bettong import Application, each
from bettong.application.plan import Plan, plan
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.inspection.dead_letters import Found, ResendMark
from bettong.inspection.retry import Cannot, Resend, decide
from bettong.inspection.text import MessageForm, message_text, moment
from bettong.v1.frame_pb2 import DeadLetter

HOUR_NS = 3600 * 10**9


@dataclass
class Number:
    name: str
    value: int


@dataclass
class Sum:
    total: int = 0


def add(number: Number, kept: Sum) -> Sum:
    return kept


def same(number: Number) -> Number:
    return number


def two(number: Number) -> list[Number]:
    return [number, number]


def application() -> Plan:
    """Numbers -> same -> add -> {sums, by total -> last -> lasts}; pairs -> two -> summed; plain -> {a, b}.

    Branched -> {left, right} -> both; met -> {itself, by-way} -> meeting -> meetings.
    Lefts and rights -> near, asks and table -> newest.
    """
    app = Application("retry")
    numbers = app.source(
        "numbers", schema=Number, key="name", decoder=each(lambda row: Number("a", int(row)))
    )
    sums = numbers.map(same).stateful(add, state=Sum)
    sums.sink("sums")
    sums.key_by("total", name="by-total").map(lambda_free, name="last").sink("lasts")
    pairs = app.source("pairs", schema=Number, key="name")
    pairs.flat_map(two).stateful(add, state=Sum, name="summed").sink("pair-sums")
    plain = app.source("plain", schema=Number)
    plain.map(same, name="first").sink("a")
    plain.map(same, name="second").sink("b")
    branched = app.source("branched", schema=Number)
    branches = branched.map(same, name="left").merge(branched.map(same, name="right"))
    branches.sink("both", encoder=lambda number: str(number.value).encode())
    met = app.source("met", schema=Number)
    met.merge(met.map(same, name="by-way")).map(same, name="meeting").sink("meetings")
    lefts, rights, asks, table = (
        app.source(name, schema=Number, key="name") for name in ("lefts", "rights", "asks", "table")
    )
    lefts.join_within(rights, timedelta(0), timedelta(1), meet, name="near").sink("near-ones")
    asks.join_latest(table, meet, name="newest").sink("newest-ones")
    return plan(app)


def meet(left: Number, right: Number) -> Number:
    return left


def lambda_free(kept: Sum) -> Sum:
    return kept


PLAN = application()
GOOD = b'{"name":"a","value":1}'


def found(computation: str, *, origin: str = "numbers/feed", **more: Any) -> Found:
    fields = {"message": GOOD, **more}
    dead_letter = DeadLetter(
        computation=computation, reason="why", origin=origin, sequence=3, index=2, **fields
    )
    return Found(DeadLetterId(0, 12, 3), 10, dead_letter)


def decided(of: Found, *, mark: ResendMark | None = None, repeat: bool = False) -> Resend | Cannot:
    return decide(PLAN, of, mark, repeat=repeat, now_ns=100 * HOUR_NS)


def held(of: Found, *, mark: ResendMark | None = None) -> str:
    decision = decided(of, mark=mark)
    assert isinstance(decision, Cannot)
    return decision.reason


def test_what_the_decoder_refused_goes_as_it_was_received() -> None:
    of = found("numbers", as_received=True, message=b"\xff1")
    assert decided(of) == Resend("numbers", row=b"\xff1")


def test_what_the_key_function_refused_goes_as_a_message() -> None:
    assert decided(found("numbers")) == Resend("numbers", message=Number("a", 1))


def test_what_failed_in_a_join_that_keeps_it_is_held_back() -> None:
    assert "near would process it twice" in held(found("near", origin="lefts/feed"))
    assert decided(found("newest", origin="asks/feed")) == Resend("asks", message=Number("a", 1))


@pytest.mark.parametrize("computation", ["same", "add"])
def test_what_failed_before_anything_counted_it_goes_as_a_message(computation: str) -> None:
    assert decided(found(computation)) == Resend("numbers", message=Number("a", 1))


@pytest.mark.parametrize(
    ("computation", "origin", "seen"),
    [
        ("sums", "numbers/feed", "add, by-total"),
        ("by-total", "numbers/feed", "add, sums"),
        ("second", "plain/feed", "a"),
        ("summed", "pairs/feed", "summed"),
        ("both", "branched/feed", "both"),
        ("meeting", "met/feed", "meeting"),
    ],
    ids=["sink", "key_by", "branch", "other-rows", "branches-into-a-sink", "branches-that-meet"],
)
def test_what_others_have_counted_is_held_back_unless_it_is_wanted(
    computation: str, origin: str, seen: str
) -> None:
    of = found(computation, origin=origin)
    assert held(of) == f"{seen} would process it twice; --repeat sends it anyway"
    assert decided(of, repeat=True) == Resend(origin.partition("/")[0], message=Number("a", 1))


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (found("last", origin="by-total/numbers/3"), "it failed after 'by-total', which no client can feed"),
        (found("log", origin="log/unreadable", as_received=True), "came from 'log', which is not a source"),
        (
            found("numbers", as_received=True, whole_record=True),
            "it is a whole record of the log, not one message",
        ),
        (
            found("add", fired=True, message=b'{"key":"a","timer":"t","at":1}'),
            "a timer caused it, not a message",
        ),
        (found("same", truncated=True), "only the beginning of its message is kept"),
        (found("same", message=b"{"), "source 'numbers' no longer takes it: no message of Number"),
        (found("same", message=b'{"name":"a"}'), "expected fields name, value, found name"),
        (found("same", message=b'{"name":"a","value":"x"}'), "no longer takes it: field 'value'"),
        (found("same", message=b"[" * 100_000), "no message of Number: no JSON"),
        (
            found("plain", origin="plain/c", as_received=True),
            "no longer takes bytes: it has no decoder",
        ),
    ],
)
def test_what_cannot_be_sent_again_says_why(of: Found, why: str) -> None:
    assert why in held(of)


def test_what_was_sent_again_is_not_sent_once_more() -> None:
    assert held(found("same"), mark=ResendMark(99 * HOUR_NS, done=True)) == "sent again already"


def test_what_was_being_sent_is_sent_once_more_for_as_long_as_consumers_remember_its_number() -> None:
    assert isinstance(decided(found("same"), mark=ResendMark(99 * HOUR_NS, done=False)), Resend)
    assert "it is unknown whether it arrived" in held(
        found("same"), mark=ResendMark(80 * HOUR_NS, done=False)
    )


def test_a_dead_letters_name_reads_back_and_names_a_stream_that_a_sender_takes() -> None:
    id_ = DeadLetterId(3, 123, 45)
    assert DeadLetterId.of(str(id_)) == id_
    assert id_.stream == "dead-letter.3.123.45"
    assert [DeadLetterId.of(text) for text in ("", "1.2", "a.b.c", "1.2.3.4", "-1.2.3", "1.2.3\n")] == [
        None
    ] * 6


def test_a_message_is_shown_as_what_it_is() -> None:
    assert message_text(b'{"a":1}', MessageForm.AUTO) == '{\n  "a": 1\n}'
    assert message_text(b"plain", MessageForm.AUTO) == "plain"
    assert (
        message_text(b"\xff\x00", MessageForm.AUTO) == message_text(b"\xff\x00", MessageForm.HEX) == "ff 00"
    )
    assert message_text(b"a\nb", MessageForm.AUTO) == "61 0a 62", (
        "what would move a terminal's cursor is not printed"
    )
    assert message_text(b"12", MessageForm.AUTO) == "12"
    assert message_text("é".encode(), MessageForm.TEXT) == "é"
    for form, message in ((MessageForm.JSON, b"x"), (MessageForm.TEXT, b"\xff")):
        with pytest.raises(ValueError, match=r"Expecting|decode"):
            message_text(message, form)


def test_moments_are_in_utc() -> None:
    assert moment(1_700_000_000_123_456_789) == "2023-11-14 22:13:20.123"
    assert moment(0) == ""


def test_what_may_have_been_sent_before_retention_deleted_the_mark_is_held_back_unless_it_is_to_be_repeated() -> (
    None
):
    of = replace(found("numbers", as_received=True, message=b"1"), mark_may_be_deleted=True)
    assert held(of) == (
        "records of its time were deleted from the topic of dead letters, maybe with the mark that it was sent again;"
        " --repeat sends it anyway"
    )
    assert decided(of, repeat=True) == Resend("numbers", row=b"1")
    assert decided(of, mark=ResendMark(99 * HOUR_NS, done=False)) == Resend("numbers", row=b"1")
    assert held(of, mark=ResendMark(99 * HOUR_NS, done=True)) == "sent again already"
