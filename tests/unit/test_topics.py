"""The names of topics: one list, and no two things with one name."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from bettong.topics import (
    DEAD_LETTERS,
    all_topics,
    dead_letter_topic,
    sink_topic,
    stage_of_topic,
    stage_topic,
)

NAME = st.from_regex(re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII), fullmatch=True)


@given(NAME, NAME)
def test_the_stage_of_a_topic_is_told_from_its_name(application: str, stage: str) -> None:
    assert stage_of_topic(application, stage_topic(application, stage)) == stage


@given(NAME, NAME, NAME)
def test_topics_are_names_that_kafka_takes(application: str, stage: str, sink: str) -> None:
    for topic in all_topics(application, stages=[stage], sinks=[sink]):
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic)


@given(
    NAME, st.lists(NAME, unique=True), st.lists(NAME.filter(lambda name: name != DEAD_LETTERS), unique=True)
)
def test_all_topics_of_an_application_differ(application: str, stages: list[str], sinks: list[str]) -> None:
    topics = all_topics(application, stages=stages, sinks=sinks)
    assert len(set(topics)) == len(topics) == len(stages) + len(sinks) + 2


def test_the_dead_letters_are_a_sink_like_others() -> None:
    assert sink_topic("app", DEAD_LETTERS) == dead_letter_topic("app") == "app.dead-letters"
    assert sink_topic("app", "out") == "app.sink.out"
