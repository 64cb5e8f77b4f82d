#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An independent model of configs/fraud/job.sql for payments that come in order per card, without ties.

    model.py FOLDER < payments.jsonl      writes FOLDER/scores, alerts, merchant_minute: sorted lines
    model.py FOLDER I/N < payments.jsonl  the same for the cards of part I of N; minutes are left out
    model.py --compare EXPECTED GOT       compares two files of lines as multisets, numbers by value

It works in cents and milliseconds with whole numbers and shares nothing with the engine.
"""
import collections
import datetime
import json
import sys
import zlib
from pathlib import Path

EPOCH = datetime.datetime(1970, 1, 1)
WINDOWS = (("60s", 60_000), ("1h", 3_600_000), ("24h", 86_400_000))


def to_ms(text):
    whole, _, fraction = text.partition(".")
    seconds = int((datetime.datetime.strptime(whole, "%Y-%m-%d %H:%M:%S") - EPOCH).total_seconds())
    return seconds * 1000 + int((fraction + "000")[:3])


def to_text(ms):
    text = (EPOCH + datetime.timedelta(seconds=ms // 1000)).strftime("%Y-%m-%d %H:%M:%S")
    return text + (f".{ms % 1000:03d}".rstrip("0") if ms % 1000 else "")


def cents(number):
    """A JSON number's text as cents, rounded half up."""
    whole, _, fraction = number.partition(".")
    fraction = (fraction + "000")[:3]
    return int(whole) * 100 + int(fraction[:2]) + (1 if fraction[2] >= "5" else 0)


def plain(value, scale):
    """A scaled whole number as plain decimal text."""
    digits = str(value).rjust(scale + 1, "0")
    return f"{digits[:-scale]}.{digits[-scale:]}"


def divide(a, b):
    """a / b for a >= 0, rounded half up."""
    return (2 * a + b) // (2 * b)


class Card:
    """What is known of a card: its payments of the last day, and for each window the running figures."""

    def __init__(self):
        self.rows = collections.deque()
        self.first = [0, 0, 0]  # number of the first row inside of each window
        self.base = 0           # number of rows[0]
        self.sums = [0, 0, 0]
        self.tops = [collections.deque() for _ in WINDOWS]
        self.countries = collections.Counter()
        self.last = None

    def add(self, at, amount, country):
        number = self.base + len(self.rows)
        self.rows.append((at, amount, country))
        self.countries[country] += 1
        features = []
        for i, (_, length) in enumerate(WINDOWS):
            self.sums[i] += amount
            top = self.tops[i]
            while top and top[-1][1] <= amount:
                top.pop()
            top.append((number, amount))
            while self.rows[self.first[i] - self.base][0] < at - length:
                old = self.rows[self.first[i] - self.base]
                self.sums[i] -= old[1]
                if length == 86_400_000:
                    self.countries[old[2]] -= 1
                self.first[i] += 1
            while top[0][0] < self.first[i]:
                top.popleft()
            features.append((number - self.first[i] + 1, self.sums[i], top[0][1]))
        while self.base < min(self.first):
            self.rows.popleft()
            self.base += 1
        previous, self.last = self.last, at
        return features, previous, self.countries[country]


def score_of(features, previous, same_country, at, amount):
    (n1, _, _), (_, s2, _), (n3, s3, top3) = features
    velocity = 35 if n1 >= 5 else 20 if n1 >= 3 else 0
    volume = 25 if s2 > 200_000 else 10 if s2 > 80_000 else 0
    average = divide(s3 * 10_000, n3)  # six digits behind the point
    unusual = 25 if n3 >= 4 and amount * 10_000 >= 4 * average else 0
    abroad = 20 if n3 >= 5 and same_country * 10 <= n3 else 0
    large = 15 if amount >= 100_000 and amount == top3 else 0
    # TIMESTAMPDIFF counts whole seconds between the two times.
    burst = previous is not None and (at - previous) // 1000 < 2
    names = [name for name, on in (("velocity", velocity), ("volume", volume), ("unusual", unusual), ("abroad", abroad),
                                   ("large", large), ("burst", burst)) if on]
    return min(velocity + volume + unusual + abroad + large + (10 if burst else 0), 100), " ".join(names)


def answer(payment, card):
    at, amount = to_ms(payment["ts"]), cents(payment["amount"])
    features, previous, same = card.add(at, amount, payment["country"])
    score, reason = score_of(features, previous, same, at, amount)
    out = [f'"id":{payment["id"]}', f'"card":{json.dumps(payment["card"])}', f'"amount":{plain(amount, 2)}']
    for (name, _), (count, total, top) in zip(WINDOWS, features):
        out += [f'"n_{name}":{count}', f'"sum_{name}":{plain(total, 2)}', f'"max_{name}":{plain(top, 2)}',
                f'"avg_{name}":{plain(divide(total * 10_000, count), 6)}']
    share = plain(divide(same * 10_000, features[2][0]), 4)
    out += [f'"since_previous_s":{"null" if previous is None else (at - previous) // 1000}', f'"country_share":{share}',
            f'"score":{score}', f'"reason":{json.dumps(reason) if reason else "null"}', f'"ts":"{to_text(at)}"']
    alert = None
    if score >= 60:
        alert = (f'{{"id":{payment["id"]},"card":{json.dumps(payment["card"])},"merchant":{json.dumps(payment["merchant"])},'
                 f'"amount":{plain(amount, 2)},"score":{score},"reason":{json.dumps(reason)},"ts":"{to_text(at)}"}}')
    return "{" + ",".join(out) + "}", alert, (payment["merchant"], at // 60_000), amount


def card_of(line):
    """The bytes of a generated payment's card, without parsing it."""
    start = line.index(b'"card":"') + 8
    return line[start:line.index(b'"', start)]


def run(folder, part=0, parts=1):
    cards, minutes = collections.defaultdict(Card), {}
    scores, alerts = [], []
    for line in sys.stdin.buffer:
        if parts > 1 and zlib.crc32(card_of(line)) % parts != part:
            continue
        payment = json.loads(line, parse_float=str, parse_int=str)
        scored, alert, minute, amount = answer(payment, cards[payment["card"]])
        scores.append(scored)
        if alert:
            alerts.append(alert)
        n, total, top = minutes.get(minute, (0, 0, 0))
        minutes[minute] = (n + 1, total + amount, max(top, amount))
    sums = [f'{{"merchant":{json.dumps(m)},"window_start":"{to_text(at * 60_000)}","window_end":"{to_text(at * 60_000 + 60_000)}",'
            f'"n":{n},"total":{plain(total, 2)},"largest":{plain(top, 2)}}}' for (m, at), (n, total, top) in minutes.items()]
    folder.mkdir(parents=True, exist_ok=True)
    written = (("scores", scores), ("alerts", alerts), ("merchant_minute", sums))
    for name, lines in written[:2 if parts > 1 else 3]:
        (folder / name).write_text("".join(f"{x}\n" for x in sorted(lines)))


def lines_of(path):
    import gzip
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return collections.Counter(data.decode().splitlines())


def compare(expected, got):
    want, have = lines_of(Path(expected)), lines_of(Path(got))
    missing, extra = want - have, have - want
    for name, lines in (("missing", missing), ("extra", extra)):
        for line in list(lines)[:3]:
            print(f"{name}: {line}")
    print(f"{got}: {sum(have.values())} lines, {sum(missing.values())} missing, {sum(extra.values())} extra")
    return 1 if missing or extra or not have else 0


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        sys.exit(compare(sys.argv[2], sys.argv[3]))
    run(Path(sys.argv[1]), *(int(x) for x in (sys.argv[2].split("/") if len(sys.argv) > 2 else ())))
