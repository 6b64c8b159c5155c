"""What the examples must give for their files in `examples/data`, computed by plain loops over plain rows.

An answer is, by sink, the results as rows. `examples/data/*/expected` holds the same; run this file to write it again.
"""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from examples import classifier
from tests.samples.example_files import DATA, ExampleFiles

Row = dict[str, Any]
S_NS = 10**9
MINUTE_NS = 60 * S_NS
HOUR_NS = 60 * MINUTE_NS
# Of float32: bits of the significand, and the exponents of the least and of the first too large number.
PRECISION, LEAST, TOO_LARGE = 24, -149, 128


def line(row: Row) -> str:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False)


def running_totals(files: ExampleFiles) -> dict[str, list[Row]]:
    totals, found = Counter[str](), []
    for row in files.rows("votes"):
        totals[row["letter"]] += int(row["votes"])
        found.append({"letter": row["letter"], "total": totals[row["letter"]]})
    return {"totals": found}


def orders_with_prices(files: ExampleFiles) -> dict[str, list[Row]]:
    with (DATA / "orders_with_prices" / "prices.csv").open() as file:
        prices = {row["sku"]: (row["name"], int(row["cents"])) for row in csv.DictReader(file)}
    found = []
    for order in files.rows("orders"):
        name, cents = prices.get(order["sku"], (order["sku"], 0))
        count = order["count"]
        found.append({"customer": order["customer"], "name": name, "count": count, "cents": count * cents})
    return {"positions": found}


def celsius(files: ExampleFiles) -> dict[str, list[Row]]:
    rows = files.rows("celsius")
    return {"fahrenheit": [{"sensor": row["sensor"], "degrees": fahrenheit(row["degrees"])} for row in rows]}


def fahrenheit(degrees: float | str) -> float | str:
    """By exact fractions, each result rounded as IEEE 754 says; texts are NaN and the infinities of JSON."""
    if isinstance(degrees, str):
        return degrees
    product = single(single(Fraction(degrees)) * single(Fraction("1.8")))
    rounded = product if isinstance(product, str) else single(Fraction(product) + 32)
    return rounded if isinstance(rounded, str) else float(rounded)


def single(exact: Fraction | str) -> Any:
    """The float32 that is nearest to a number, of two the even one; the name of an infinity beyond."""
    if isinstance(exact, str) or exact == 0:
        return exact
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - PRECISION + 1, LEAST)
    rounded = round(exact / unit) * unit
    if abs(rounded) >= Fraction(2) ** TOO_LARGE:
        return "Infinity" if exact > 0 else "-Infinity"
    return rounded


def alerts(files: ExampleFiles) -> dict[str, list[Row]]:
    rows = files.rows("transactions")
    overdrawn, balances = [], Counter[str]()
    for row in rows:
        before = balances[row["account"]]
        balances[row["account"]] += row["cents"]
        if before >= 0 > balances[row["account"]]:
            overdrawn.append({"account": row["account"], "balance": before + row["cents"], "at": row["at"]})
    minutes: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for row in rows:
        if row["cents"] < 0:
            minutes[row["at"] // MINUTE_NS * MINUTE_NS, row["account"]].append(-row["cents"])
    busy = [
        {"key": account, "start": start, "payments": len(cents), "cents": sum(cents)}
        for (start, account), cents in sorted(minutes.items())
        if sum(cents) > 50_000
    ]
    large = [row for row in rows if not -100_000 < row["cents"] < 100_000]
    return {"large": large, "overdrawn": overdrawn, "busy": busy}


def classified(files: ExampleFiles) -> dict[str, list[Row]]:
    """By the model's own `predict`, of all rows at once."""
    rows = files.rows("readings")
    features = np.array([[float(row["vibration"]), float(row["heat"])] for row in rows])
    verdicts = classifier.VERDICTS[classifier.MODEL.predict(features)]
    shares = classifier.MODEL.predict_proba(features).max(axis=1)
    return {
        "verdicts": [
            {"machine": row["machine"], "verdict": verdict.decode(), "sure": float(share)}
            for row, verdict, share in zip(rows, verdicts, shares, strict=True)
        ]
    }


def card_fraud(files: ExampleFiles) -> dict[str, list[Row]]:
    rows = files.rows("events")
    found = []
    for index, row in enumerate(rows):
        if row["kind"] != "paid" or row["cents"] < 50_000:
            continue
        alert = {"card": row["card"], "number": row["number"]}
        before = [each for each in rows[:index] if each["card"] == row["card"] and each["kind"] == "paid"]
        if any(each["cents"] <= 200 and row["at"] - each["at"] < MINUTE_NS for each in before):
            found.append(alert | {"reason": "tried out before"})
        confirmed = {each["number"]: each["at"] for each in rows[index:] if each["kind"] == "confirmed"}
        if confirmed.get(row["number"], row["at"] + MINUTE_NS) >= row["at"] + MINUTE_NS:
            found.append(alert | {"reason": "not confirmed"})
    return {"alerts": found}


def visits(files: ExampleFiles) -> dict[str, list[Row]]:
    rows = sorted(files.rows("clicks"), key=lambda row: int(row["at"]))
    found = []
    for person in sorted({row["person"] for row in rows}):
        clicks = [row for row in rows if row["person"] == person]
        breaks = [
            at for at, (one, two) in enumerate(pairwise(clicks), 1) if two["at"] - one["at"] > HOUR_NS // 2
        ]
        for start, stop in pairwise([0, *breaks, len(clicks)]):
            visit = clicks[start:stop]
            found.append(
                {
                    "person": person,
                    "began": visit[0]["at"],
                    "seconds": (visit[-1]["at"] - visit[0]["at"]) / S_NS,
                    "clicks": len(visit),
                    "first_page": visit[0]["page"],
                    "last_page": visit[-1]["page"],
                }
            )
    hours: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for row in rows:
        hours[row["at"] // HOUR_NS * HOUR_NS, row["page"]].append(row["person"])
    return {
        "visits": found,
        "hours": [
            {"key": page, "start": start, "clicks": len(persons), "persons": len(set(persons))}
            for (start, page), persons in sorted(hours.items())
        ],
    }


def trades_and_quotes(files: ExampleFiles) -> dict[str, list[Row]]:
    found = []
    for trade in files.rows("trades"):
        valid = [
            quote
            for quote in files.rows("quotes")
            if quote["symbol"] == trade["symbol"] and 0 <= trade["at"] - quote["at"] <= S_NS
        ]
        quote = max(valid, key=lambda each: int(each["at"]), default=None)
        off, age_ms = 0.0, -1
        if quote is not None:
            off = trade["price"] - (quote["bid"] + quote["ask"]) / 2
            age_ms = (trade["at"] - quote["at"]) // 10**6
        found.append(
            {"symbol": trade["symbol"], "price": trade["price"], "off_middle": off, "age_ms": age_ms}
        )
    return {"costs": found}


def word_count(files: ExampleFiles) -> dict[str, list[Row]]:
    totals, found = Counter[str](), []
    for word in " ".join(row["text"] for row in files.rows("lines")).lower().split():
        totals[word] += 1
        found.append({"word": word, "total": totals[word]})
    return {"counts": found}


def overdue_orders(files: ExampleFiles) -> dict[str, list[Row]]:
    rows = files.rows("steps")
    approved = {row["order"]: row["time"] for row in rows if row["approved"]}
    ends = {row["order"]: row["time"] + MINUTE_NS for row in rows if not row["approved"]}
    return {
        "overdue": [
            {"order": order, "time": end} for order, end in ends.items() if approved.get(order, end) >= end
        ]
    }


def turnover(files: ExampleFiles) -> dict[str, list[Row]]:
    so_far, found = Counter[str](), []
    for row in files.rows("trades"):
        cents = int(row["cents"]) * int(row["quantity"])
        if cents >= 1_000_000:
            so_far[row["symbol"]] += cents
            found.append({"symbol": row["symbol"], "cents": cents, "so_far": so_far[row["symbol"]]})
    return {"turnover": found}


ANSWERS: dict[str, Callable[[ExampleFiles], dict[str, list[Row]]]] = {
    "alerts": alerts,
    "card_fraud": card_fraud,
    "celsius": celsius,
    "classifier": classified,
    "orders_with_prices": orders_with_prices,
    "overdue_orders": overdue_orders,
    "running_totals": running_totals,
    "trades_and_quotes": trades_and_quotes,
    "turnover": turnover,
    "visits": visits,
    "word_count": word_count,
}


def write() -> None:
    """Writes the golden files of all examples."""
    for name, answer in ANSWERS.items():
        files = ExampleFiles(name)
        for sink, rows in answer(files).items():
            files.golden_file(sink).parent.mkdir(exist_ok=True)
            files.golden_file(sink).write_text("".join(f"{line(row)}\n" for row in rows))


if __name__ == "__main__":
    write()
