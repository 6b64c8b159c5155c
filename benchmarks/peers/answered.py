"""Which records of a load have their result, by the results as they come out of a topic."""

from benchmarks.peers.load import Load
from benchmarks.peers.race import RaceError


class AnsweredRecords:
    """Of a load that has one result a record, no two alike, which come in the order of their key's records.

    `merges`: who runs may fold several records of a key at once and put out the newest result alone, which then answers
    all of them. `left`: how many records have none yet.
    """

    def __init__(self, load: Load, *, merges: bool) -> None:
        self.left = load.results
        self._merges = merges
        self._positions = {
            result: (key, position)
            for key, results in load.expected.items()
            for position, result in enumerate(results)
        }
        self._numbers: dict[bytes, list[int]] = {key: [] for key in load.expected}
        for number, record in enumerate(load.opening + load.timed, -len(load.opening)):
            self._numbers[record.key].append(number)
        self._answered = dict.fromkeys(load.expected, 0)

    def note(self, result: bytes) -> list[int]:
        """The numbers of the records that it answers; they count from 0, those before the clock below.

        Raises RaceError unless it is the next one of its key, or with `merges` a later one.
        """
        if result not in self._positions:
            raise RaceError(f"wrong: nobody expected the result {result!r}")
        key, position = self._positions[result]
        answered = self._answered[key]
        if position < answered:
            raise RaceError(f"wrong: {result!r} came twice, or behind a later one of its key")
        if position > answered and not self._merges:
            raise RaceError(f"wrong: {result!r} came without {position - answered} before it")
        self._answered[key] = position + 1
        numbers = self._numbers[key][answered : position + 1]
        self.left -= len(numbers)
        return numbers
