"""Which slot gets which partition: all are dealt, evenly, and nothing moves without need."""

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from bettong_processor.resident.dealing import dealt, place_of, stage_of

PLACES = st.builds(
    lambda stages, partitions: [
        place_of(f"stage-{stage}", p) for stage, p in product(range(stages), range(partitions))
    ],
    st.integers(1, 3),
    st.integers(1, 20),
)
MEMBERS = st.frozensets(st.integers(0, 9), min_size=1, max_size=8)


def shares(places: list[str], deal: dict[str, int], members: frozenset[int]) -> dict[str, list[int]]:
    """How many partitions of each stage each member has."""
    counts = Counter((stage_of(place)[0], deal[place]) for place in places)
    stages = {stage_of(place)[0] for place in places}
    return {stage: [counts[stage, member] for member in sorted(members)] for stage in stages}


def test_places_are_named_and_read_again() -> None:
    assert stage_of(place_of("by/region", 12)) == ("by/region", 12)


@given(PLACES, MEMBERS, st.data())
def test_every_stage_is_dealt_evenly_whoever_held_what(
    places: list[str], members: frozenset[int], data: st.DataObject
) -> None:
    current = data.draw(st.dictionaries(st.sampled_from(places), st.integers(0, 12)))
    deal = dealt(places, members, current)
    assert deal.keys() == set(places)
    assert set(deal.values()) <= members
    for counts in shares(places, deal, members).values():
        assert max(counts) - min(counts) <= 1


@given(PLACES, MEMBERS)
def test_a_deal_is_dealt_the_same_again(places: list[str], members: frozenset[int]) -> None:
    deal = dealt(places, members, {})
    assert dealt(list(reversed(places)), members, deal) == deal


@given(PLACES, MEMBERS, st.integers(0, 9))
def test_who_leaves_moves_only_what_it_had(places: list[str], members: frozenset[int], gone: int) -> None:
    left = members - {gone}
    before = dealt(places, members, {})
    after = dealt(places, left, before) if left else before
    moved = {place for place in places if before[place] != after[place]}
    assert all(before[place] == gone for place in moved)


@given(PLACES, MEMBERS, st.integers(10, 12))
def test_who_comes_gets_its_share_and_nobody_else_gets_anything(
    places: list[str], members: frozenset[int], new: int
) -> None:
    before = dealt(places, members, {})
    after = dealt(places, members | {new}, before)
    assert all(after[place] == new for place in places if before[place] != after[place])


@given(PLACES, MEMBERS)
def test_what_single_stages_leave_over_is_spread(places: list[str], members: frozenset[int]) -> None:
    deal = dealt(places, members, {})
    totals = Counter(deal.values())
    counts = [totals[member] for member in members]
    assert max(counts) - min(counts) <= 1


def test_without_members_all_stays() -> None:
    assert dealt(["a/0", "a/1"], [], {"a/0": 3}) == {"a/0": 3}
