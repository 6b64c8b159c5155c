"""The inputs that the specs name, made from a seed: files as `bettong send` takes them."""

import json
import random
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from examples.market_spread_load import INITIAL_QUOTES, rounds
from tests.faults.passthrough import PAYLOAD_BYTES

SEED = 4
KEYS = "ABCDEFGHIJ"
_LENGTH = struct.Struct(">I")
_GROUP_MESSAGES = 1_000_000


def letters(folder: Path, *, seconds: int, bytes_per_s: int = 66_000) -> None:
    """`letters-A.bin` to `letters-J.bin`: random bytes of one key each, so many a second."""
    chance = random.Random(SEED)
    for key in KEYS:
        with (folder / f"letters-{key}.bin").open("wb") as file:
            for _ in range(seconds * bytes_per_s // (1 + PAYLOAD_BYTES)):
                # No NUL at the end: fields of a fixed width are padded with it, and lose it as Python bytes.
                payload = chance.randbytes(PAYLOAD_BYTES - 1) + b"."
                file.write(_LENGTH.pack(1 + PAYLOAD_BYTES) + key.encode() + payload)


def lines(folder: Path, *, count: int) -> None:
    """`lines.txt`: words of a vocabulary in which some are common and most are rare.

    Also in two halves, of odd and of even lines: `lines-1.txt` and `lines-2.txt`. `counts.jsonl`: what must be counted,
    which is the same however lines take turns.
    """
    chance = random.Random(SEED)
    found = [
        " ".join(f"w{int(chance.paretovariate(0.7)) % 5000}" for _ in range(chance.randrange(1, 12))) + "\n"
        for _ in range(count)
    ]
    for name, part in (("lines", found), ("lines-1", found[::2]), ("lines-2", found[1::2])):
        (folder / f"{name}.txt").write_text("".join(part))
    seen = Counter(word for line in found for word in line.split())
    counts = ({"word": word, "total": total + 1} for word, last in seen.items() for total in range(last))
    (folder / "counts.jsonl").write_text(
        "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in counts)
    )


def market(folder: Path, *, messages: int) -> None:
    """`quotes.parquet` and `orders.parquet`; `initial.msg`: the first quote of each symbol."""
    (folder / "initial.msg").write_bytes(INITIAL_QUOTES.read_bytes())
    load = list(rounds(messages, seed=SEED, round_messages=10_000))
    for name, parts in (
        ("quotes", [each.quotes for each in load]),
        ("orders", [each.orders for each in load]),
    ):
        columns = {
            field: pa.concat_arrays([pa.array(part[field].tolist()) for part in parts]) for field in parts[0]
        }
        pyarrow.parquet.write_table(pa.table(columns), folder / f"{name}.parquet")


def amounts(folder: Path, *, count: int, keys: int = 1000) -> None:
    """`amounts.parquet`: amounts of so many keys, some of which are common."""
    chance = np.random.default_rng(SEED)
    schema = pa.schema([("key", pa.int32()), ("amount", pa.int32())])
    with pyarrow.parquet.ParquetWriter(folder / "amounts.parquet", schema) as writer:
        for start in range(0, count, _GROUP_MESSAGES):
            length = min(_GROUP_MESSAGES, count - start)
            chosen = (keys * chance.random(length) ** 2).astype(np.int32)
            moved = chance.integers(-(2**31), 2**31, length, dtype=np.int32)
            writer.write_table(pa.table([chosen, moved], schema))
