"""Word count on the whole suite: two stages, the second keyed by word."""

import json
from collections import Counter
from pathlib import Path

from bettong import metrics
from bettong.client.sender import Sender
from tests.e2e.conftest import ROOT, StartSuite


def test_word_count_equals_a_plain_counter(start_suite: StartSuite) -> None:
    texts = [Path(ROOT / name).read_text() for name in ("LICENSE", "README.md", "docs/delivery.md")]
    lines = [line for text in texts for line in text.splitlines()]
    expected = Counter(word for line in lines for word in line.lower().split())
    running = start_suite("examples/word_count.py")

    with Sender(running.sender, "lines") as sender:
        for start in range(0, len(lines), 50):
            sender.send_rows([line.encode() for line in lines[start : start + 50]])
        sender.flush(60)

    running.settle()
    seen: Counter[str] = Counter()
    for line in map(json.loads, running.all_bytes_of("counts").splitlines()):
        seen[line["word"]] += 1
        assert line["total"] == seen[line["word"]], "the counts of a word grow by one, in order"
    assert seen == expected
    assert running.sum(metrics.DEAD_LETTERS) == 0
