"""The earliest of many times that change: against a model that looks at all, and by the entries kept."""

from hypothesis import given
from hypothesis import strategies as st

from bettong.application.timers import NEVER
from bettong.worker.lazy_heap import LazyHeap

TIMES = st.integers(-5, 30)
STEPS = st.tuples(st.sampled_from(["set", "set", "unset", "take"]), st.sampled_from("abcdef"), TIMES)


def heap_of(times: dict[str, int]) -> LazyHeap[str]:
    return LazyHeap(lambda key: times.get(key, NEVER))


def set_time(heap: LazyHeap[str], times: dict[str, int], key: str, at_ns: int) -> None:
    """As owners do it: nothing is pushed for a time that becomes later."""
    is_earlier = at_ns < times.get(key, NEVER)
    times[key] = at_ns
    if is_earlier:
        heap.push(key, at_ns)
    heap.compact(len(times))


@given(st.lists(STEPS, max_size=200))
def test_the_first_is_the_earliest_of_all_however_times_change(steps: list[tuple[str, str, int]]) -> None:
    times: dict[str, int] = {}
    heap = heap_of(times)
    for step, key, at_ns in steps:
        if step == "set":
            set_time(heap, times, key, at_ns)
        elif step == "unset":
            times.pop(key, None)
            heap.compact(len(times))
        else:
            while (first := heap.first(at_ns)) is not None:
                assert first[0] == times[first[1]] == min(times.values())
                heap.drop_first()
                del times[first[1]]
            assert all(each > at_ns for each in times.values())
        assert heap.bound_ns <= min(times.values(), default=NEVER)
        first = heap.first()
        assert (first[0] if first is not None else NEVER) == min(times.values(), default=NEVER)
        assert len(heap) <= 2 * len(times) + 64


def test_a_time_that_becomes_later_again_and_again_keeps_one_entry() -> None:
    times: dict[str, int] = {}
    heap = heap_of(times)
    for at_ns in range(1000):
        set_time(heap, times, "a", at_ns)
        set_time(heap, times, "b", at_ns)
    assert len(heap) == 2
    assert (heap.bound_ns, heap.first(998)) == (0, None)
    assert heap.bound_ns == 999


def test_keys_that_are_gone_leave_few_entries() -> None:
    times: dict[str, int] = {}
    heap = heap_of(times)
    for number in range(5000):
        set_time(heap, times, f"k{number}", number)
        times.pop(f"k{number - 3}", None)
        heap.compact(len(times))
    assert len(heap) <= 2 * 3 + 64
    assert heap.first() == (4997, "k4997")
