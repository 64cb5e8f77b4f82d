#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the payments of the fraud case: in order, no ties on a card, some cards busy, some idle for days.

    make_input.py [COUNT [SEED]] > in/payments.jsonl
"""
import datetime
import json
import random
import sys

START = datetime.datetime(2026, 3, 1, 8, 0, 0)
COUNTRIES = ["DE"] * 12 + ["FR", "NL", "US", "BR"]


def burst(rnd, at):
    """Times of a run of payments on one card, from seconds to minutes apart."""
    times = []
    for _ in range(rnd.choice([1, 1, 1, 2, 3, 8])):
        times.append(at)
        at += rnd.choice([700, 2_500, 20_000, 60_000, 180_000]) + rnd.randrange(500)
    return times


def times_of_card(rnd, index, count):
    """Distinct times of one card in ms from the start: the first ten cards are busy, every seventh is idle for days."""
    times, at = set(), rnd.randrange(3_600_000)
    while len(times) < count:
        times.update(burst(rnd, at))
        pause = rnd.randrange(20_000, 400_000) if index < 10 else rnd.randrange(600_000, 14_000_000)
        if index % 7 == 3 and rnd.random() < 0.3:
            pause += rnd.choice([90_000_000, 200_000_000, 86_400_000])
        at = max(times) + pause
    return sorted(times)[:count]


def payment(rnd, number, at, card):
    ts = START + datetime.timedelta(milliseconds=at)
    fraction = f".{at % 1000:03d}".rstrip("0").rstrip(".")
    amount = min(rnd.lognormvariate(3.2, 1.4), 9_999_999)
    return {
        "id": number, "card": f"card-{card:05d}", "merchant": f"m{rnd.randrange(200):03d}",
        "amount": float(f"{amount:.2f}"), "country": rnd.choice(COUNTRIES), "device": f"d{card * 3 + rnd.randrange(3)}",
        "ts": ts.strftime("%Y-%m-%d %H:%M:%S") + fraction,
    }


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    rnd = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    events = []
    for card in range(260):
        share = count // 20 if card < 10 else count // 500
        events += [(at, card) for at in times_of_card(rnd, card, share)]
    events.sort()
    for number, (at, card) in enumerate(events[:count], 1):
        print(json.dumps(payment(rnd, number, at, card), separators=(",", ":")))


if __name__ == "__main__":
    main()
