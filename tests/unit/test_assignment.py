"""Which slot gets which partition: all are assigned, evenly, and nothing moves without need."""

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from bettong.identifiers import PartitionId
from bettong_processor.resident.assignment import assign_partitions

PARTITIONS = st.builds(
    lambda stages, partitions: [
        PartitionId(f"stage-{stage}", p) for stage, p in product(range(stages), range(partitions))
    ],
    st.integers(1, 3),
    st.integers(1, 20),
)
MEMBERS = st.frozensets(st.integers(0, 9), min_size=1, max_size=8)


def shares(
    partitions: list[PartitionId], assignment: dict[PartitionId, int], members: frozenset[int]
) -> dict[str, list[int]]:
    """How many partitions of each stage each member has."""
    counts = Counter((each.stage, assignment[each]) for each in partitions)
    stages = {each.stage for each in partitions}
    return {stage: [counts[stage, member] for member in sorted(members)] for stage in stages}


def test_a_partition_is_written_and_parsed_again() -> None:
    written = str(PartitionId("by/region", 12))
    assert written == "by/region/12"
    assert PartitionId.parse(written) == PartitionId("by/region", 12)


@given(PARTITIONS, MEMBERS, st.data())
def test_every_stage_is_assigned_evenly_whoever_held_what(
    partitions: list[PartitionId], members: frozenset[int], data: st.DataObject
) -> None:
    current = data.draw(st.dictionaries(st.sampled_from(partitions), st.integers(0, 12)))
    assignment = assign_partitions(partitions, members, current)
    assert assignment.keys() == set(partitions)
    assert set(assignment.values()) <= members
    for counts in shares(partitions, assignment, members).values():
        assert max(counts) - min(counts) <= 1


@given(PARTITIONS, MEMBERS)
def test_an_assignment_is_the_same_when_it_is_made_again(
    partitions: list[PartitionId], members: frozenset[int]
) -> None:
    assignment = assign_partitions(partitions, members, {})
    assert assign_partitions(list(reversed(partitions)), members, assignment) == assignment


@given(PARTITIONS, MEMBERS, st.integers(0, 9))
def test_who_leaves_moves_only_what_it_had(
    partitions: list[PartitionId], members: frozenset[int], gone: int
) -> None:
    left = members - {gone}
    before = assign_partitions(partitions, members, {})
    after = assign_partitions(partitions, left, before) if left else before
    moved = {each for each in partitions if before[each] != after[each]}
    assert all(before[each] == gone for each in moved)


@given(PARTITIONS, MEMBERS, st.integers(10, 12))
def test_who_comes_gets_its_share_and_nobody_else_gets_anything(
    partitions: list[PartitionId], members: frozenset[int], new: int
) -> None:
    before = assign_partitions(partitions, members, {})
    after = assign_partitions(partitions, members | {new}, before)
    assert all(after[each] == new for each in partitions if before[each] != after[each])


@given(PARTITIONS, MEMBERS)
def test_what_single_stages_leave_over_is_spread(
    partitions: list[PartitionId], members: frozenset[int]
) -> None:
    assignment = assign_partitions(partitions, members, {})
    totals = Counter(assignment.values())
    counts = [totals[member] for member in members]
    assert max(counts) - min(counts) <= 1


def test_without_members_all_stays() -> None:
    first, second = PartitionId("a", 0), PartitionId("a", 1)
    assert assign_partitions([first, second], [], {first: 3}) == {first: 3}
