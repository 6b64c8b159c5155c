"""What is closed on leaving a `with` block."""

import pytest

from bettong.closing import Closing


class Door(Closing):
    """Counts how often it was closed."""

    closed = 0

    def close(self) -> None:
        """See Closing."""
        self.closed += 1


def test_a_block_closes_what_it_opened_once_and_hides_no_error() -> None:
    with Door() as door:
        assert door.closed == 0
    assert door.closed == 1
    with pytest.raises(ValueError, match="inside"), Door() as other:
        raise ValueError("inside")
    assert other.closed == 1
