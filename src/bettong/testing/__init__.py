"""What users test their own parts with. Needs no test framework; written to be run by pytest."""

from bettong.testing.two_phase import TwoPhaseSinkContract

__all__ = ["TwoPhaseSinkContract"]
