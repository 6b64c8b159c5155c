"""The settings of a suite's services: what further senders share with the first, and what each has for itself."""

import pytest
from pydantic import ValidationError

from bettong.local.options import SENDERS_MAX, SuiteOptions
from bettong.local.settings import further_senders

FIRST = {
    "kafka": "there:1",
    "sender_listen": "127.0.0.1:7100",
    "sender_marks": "marks",
    "sender_topics": "all",
}


def test_each_further_sender_has_a_name_a_port_and_marks_and_reads_no_external_system() -> None:
    found = further_senders(SuiteOptions(application="app.py", senders=3), FIRST)
    assert list(found) == ["sender-2", "sender-3"]
    everyone = [FIRST, *found.values()]
    assert len({each["sender_listen"] for each in everyone}) == 3
    assert len({each["sender_marks"] for each in everyone}) == 3
    assert [each["sender_topics"] for each in everyone] == ["all", "none", "none"]
    assert {each["kafka"] for each in everyone} == {"there:1"}


def test_a_suite_has_one_sender_unless_more_are_asked_for() -> None:
    assert further_senders(SuiteOptions(application="app.py"), FIRST) == {}
    for count in (0, SENDERS_MAX + 1):
        with pytest.raises(ValidationError, match="senders"):
            SuiteOptions(application="app.py", senders=count)
