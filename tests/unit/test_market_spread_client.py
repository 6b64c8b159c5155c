"""The example's client and its two sessions: both end, whatever happens, and no error hides another."""

from types import TracebackType
from typing import Self

import pytest

from bettong.errors import ClientError
from examples import market_spread_client
from examples.market_spread_client import MarketSpreadClient


class Session:
    """Stands in for a Sender: notes how it ends; fails to start, or to flush, for the source named `broken`."""

    endings: dict[str, type[BaseException] | None]
    broken = ""

    def __init__(self, _target: str, source: str) -> None:
        if source == Session.broken:
            raise ClientError("no sender answers")
        self._source = source

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        Session.endings[self._source] = kind


@pytest.fixture(autouse=True)
def _sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market_spread_client, "Sender", Session)
    Session.endings, Session.broken = {}, ""


def test_both_sessions_end_when_all_went_well() -> None:
    with MarketSpreadClient("x:1"):
        pass
    assert Session.endings == {"nbbo": None, "orders": None}


def test_an_error_reaches_both_sessions_which_then_do_not_flush_and_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), MarketSpreadClient("x:1"):
        raise ZeroDivisionError
    assert Session.endings == {"nbbo": ZeroDivisionError, "orders": ZeroDivisionError}


def test_the_first_session_ends_when_the_second_cannot_begin() -> None:
    Session.broken = "orders"
    with pytest.raises(ClientError, match="no sender answers"):
        MarketSpreadClient("x:1")
    assert Session.endings == {"nbbo": ClientError}
