"""One client cannot occupy all long calls."""

import pytest

from bettong.edges.grpc_server import ClientShares
from bettong.ingest.refusal import Code, Refusal


def test_one_client_has_its_share_of_the_calls_and_no_more() -> None:
    shares = ClientShares(2, what="sessions", setting="BETTONG_MOST", remedy="end some")
    one, other = "address 10.0.0.7", "address 10.0.0.8"
    with shares.share(one):
        with shares.share(one), shares.share(other), pytest.raises(Refusal) as caught, shares.share(one):
            raise AssertionError("one too many")
        assert caught.value.code is Code.RESOURCE_EXHAUSTED
        text = str(caught.value)
        assert "address 10.0.0.7 has 2 sessions here" in text
        assert "(BETTONG_MOST); end some, or give clients that share an address tokens" in text
        with shares.share(one):
            pass
    assert not shares._calls
