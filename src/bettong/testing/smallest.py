"""Finds the smallest case that shows a fault: leaves out inputs, first in large pieces, then by hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from bettong.errors import CaseError
from bettong.testing.inputs import Step
from bettong.testing.variations import Variation

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

_Found = TypeVar("_Found")
# Until hypothesis tries the whole case, which fails, or a part that does; it seldom needs two.
_EXAMPLES = 50

# A case of 1000 inputs of which five are needed takes some 100. Beyond this hypothesis continues with the rest.
_PIECES_MAX = 300

_Part = tuple[Sequence[Step], Variation]
Fails = Callable[[Sequence[Step], Variation], bool]


def find(
    strategy: SearchStrategy[_Found], condition: Callable[[_Found], bool], *, examples: int
) -> _Found | None:
    """The smallest value that hypothesis finds for which `condition` holds; None when it finds none.

    Deterministic.
    """
    import hypothesis

    settings = hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    try:
        return hypothesis.find(strategy, condition, settings=settings, random=Random(0))  # noqa: S311 - repeatable
    except (hypothesis.errors.NoSuchExample, hypothesis.errors.Flaky):
        return None


def require_hypothesis() -> None:
    """Raises CaseError where it is not installed."""
    try:
        import hypothesis  # noqa: F401 - whether it is there
    except ImportError:
        raise CaseError(
            "`check` and `cases` need hypothesis, which finds the smallest case that fails: pip install"
            " 'bettong[testing]'"
        ) from None


def smallest(case: Sequence[Step], variation: Variation, fails: Fails) -> tuple[list[Step], Variation]:
    """A part of a case, and of a variation, that fails as the whole does."""

    def is_wanted(part: _Part) -> bool:
        try:
            return fails(*part)
        except CaseError:  # the rest is no valid case without what was left out
            return False

    short = _without_pieces((case, variation), is_wanted)
    found = find(_parts(*short), is_wanted, examples=_EXAMPLES) or short
    part, varied = list(found[0]), found[1]
    for simpler in _simpler(varied):
        if is_wanted((part, simpler)):
            return part, simpler
    return part, varied


def _without_pieces(part: _Part, is_wanted: Callable[[_Part], bool]) -> _Part:
    """Leaves out halves, then quarters, and so on down to single inputs, wherever the rest is still wanted."""
    size, tried = len(part[0]) // 2, 0
    while size:
        start = 0
        while start < len(part[0]):
            if tried == _PIECES_MAX:
                return part
            tried += 1
            rest = _without(part, start, start + size)
            if is_wanted(rest):
                part = rest
            else:
                start += size
        size //= 2
    return part


def _without(part: _Part, start: int, stop: int) -> _Part:
    case, variation = part
    joined = variation.joined[:start] + variation.joined[stop:]
    return [*case[:start], *case[stop:]], replace(variation, joined=joined)


def _parts(case: Sequence[Step], variation: Variation) -> SearchStrategy[tuple[list[Step], Variation]]:
    from hypothesis import strategies as st

    # Most draws keep all; a shrunken one is 0, and leaves out.
    stays = st.integers(0, 4 * len(case) + 8).map(bool)

    @st.composite
    def parts(draw: DrawFn) -> tuple[list[Step], Variation]:
        kept = [draw(stays) for _ in case]
        joined = variation.joined and tuple(
            draw(stays) and each for each, keeps in zip(variation.joined, kept, strict=True) if keeps
        )
        part = [step for step, keeps in zip(case, kept, strict=True) if keeps]
        return part, replace(variation, joined=joined)

    drawn: Any = parts()
    return drawn  # type: ignore[no-any-return]


def _simpler(variation: Variation) -> list[Variation]:
    """Simpler variations, the simplest first."""
    found = [replace(variation, partitions=partitions) for partitions in range(1, variation.partitions)]
    if variation.partitions > 1 and any(variation.joined):
        found = [replace(variation, joined=(), partitions=each.partitions) for each in found] + found
    return found
