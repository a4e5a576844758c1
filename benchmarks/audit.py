"""How often is `lossforge audit` right? Simulated cases, where the truth is known.

Of each full case, an audit sees noisy labels alone; every candidate is then trained on all of them
with three seeds and tested on clean labels. Of each rate-only case, only the noise rate is
estimated. The cases are in audit_cases.json, written before any of them was run. Full cases come in
four rounds: the first had shown that a proof should not come first among level candidates, the
"fresh" ones that no other order of these does better, the "last" ones judge the rule that followed,
and the "scaled" ones judge it with a penalty of linear models that follows the features. Each
finished case is kept, so that the same command continues after an interruption; cases that are
committed in records/ are not done again. --write puts the tables into docs/audit.md.
"""

import argparse
import gzip
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from audit_cases import full_case, rate_case
from audit_simulated import Case
from scipy.stats import spearmanr

from lossforge.files import write_atomically

HERE = Path(__file__).resolve().parent
CASES, RECORDS = HERE / "audit_cases.json", HERE / "records" / "audit.jsonl.gz"
WORK, PAGE = HERE.parent / "runs" / "audit-cases.jsonl", HERE.parent / "docs" / "audit.md"
BEGIN, END = "<!-- audit cases: begin -->", "<!-- audit cases: end -->"
DO: dict[str, Callable[[Case], dict[str, Any]]] = {
    "full": full_case,
    "rate": rate_case,
    "fresh": full_case,  # with the rule that was chosen after these
    "last": full_case,  # with the rule as it is, and a smaller penalty of linear models
    "scaled": full_case,  # as it is
}
ROUNDS = {
    "scaled": "with the audit as it is",
    "last": "with a smaller penalty of linear models, before it",
    "fresh": "with a second rule, before both",
    "full": "with a first rule, before all of these",
}
POINT = 0.01
SUSPECTS = ("suspects", "cleanlab", "bayes")
Record = dict[str, Any]


# The cases and their records


def read_cases(path: Path) -> list[tuple[str, Case]]:
    """Read whether each case is full or rate-only, and the case, in the order they are done."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [(what, Case(*rest)) for what, *rest in rows]


def read_records(packed: Path | None, work: Path) -> list[Record]:
    """Read the committed records and those of this computer; a torn last line is left out."""
    text = ""
    if packed is not None and packed.exists():
        text = gzip.decompress(packed.read_bytes()).decode()
    text += work.read_text(encoding="utf-8") if work.exists() else ""
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def key(what: str, case: Case) -> tuple[object, ...]:
    """Identify a case."""
    return (what, case.data, case.kind, case.rate, case.seed)


def key_of(record: Record) -> tuple[object, ...]:
    """Identify the case of a record."""
    return tuple(record[name] for name in ("what", "data", "kind", "rate_set", "seed"))


def run(cases: Iterable[tuple[str, Case]], work: Path, done: Iterable[Record]) -> list[Record]:
    """Do the cases that are not done, and append each to the file."""
    found = {key_of(record): record for record in done}
    work.parent.mkdir(parents=True, exist_ok=True)
    for what, case in cases:
        if key(what, case) in found:
            continue
        start = time.process_time()
        about = {"what": what, "data": case.data, "kind": case.kind, "rate_set": case.rate}
        record = {**about, "seed": case.seed, **DO[what](case)}
        record["seconds"] = round(time.process_time() - start, 1)
        with work.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        found[key(what, case)] = record
        print(f"{what} {case}: {record['seconds']} s", file=sys.stderr, flush=True)
    return list(found.values())


def pack(records: Sequence[Record], packed: Path) -> None:
    """Write the records as they are committed: sorted, the same bytes each time."""
    lines = sorted(records, key=lambda record: [str(part) for part in key_of(record)])
    text = "".join(json.dumps(line) + "\n" for line in lines)
    packed.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(packed, gzip.compress(text.encode(), mtime=0))


# The tables


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    z = 1.959964
    centre = (hits + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * (hits * (n - hits) / n + z * z / 4) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def share(hits: int, n: int) -> str:
    """Write a share with its interval."""
    low, high = wilson(hits, n)
    return f"{hits} of {n}, {100 * hits / n:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


def means(record: Record) -> dict[str, float]:
    """Return the mean accuracy of each candidate on clean labels."""
    return {name: statistics.fmean(found) for name, found in record["accuracy"].items()}


def behind(record: Record, name: str | None = None) -> float:
    """Return how far a candidate, or the recommended one, is behind the best."""
    found = means(record)
    return max(found.values()) - found[name or record["recommended"]]


def correlation(record: Record, judge: str) -> float:
    """Return the rank correlation of a judge with the accuracy on clean labels."""
    found = means(record)
    return float(spearmanr([record[judge][name] for name in found], list(found.values()))[0])


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Write a table, whose first row is its head."""
    head, *rest = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rest))


def advice_table(records: Sequence[Record]) -> str:
    """Write how good the recommendation is, by data set."""
    head = ["data", "cases", "within a point of the best", "points behind, mean", "CE"]
    rows = [[*head, "judge's rank correlation", "that of noisy accuracy"]]
    for name, part in grouped(records, "data"):
        hits = sum(behind(one) <= POINT for one in part)
        short = [statistics.fmean(behind(one, who) for one in part) for who in (None, "CE")]
        ranks = [
            statistics.fmean(correlation(one, judge) for one in part)
            for judge in ("scores", "noisy")
        ]
        cells = [name, str(len(part)), share(hits, len(part))]
        rows.append([*cells, *(points(one) for one in short), *(f"{one:.2f}" for one in ranks)])
    return markdown(rows)


def fixed_table(records: Sequence[Record]) -> str:
    """Write how good it would be to take the same candidate in all cases."""
    found: list[tuple[float, list[str]]] = []
    for name in (None, *means(records[0])):
        short = [behind(one, name) for one in records]
        hits, mean = sum(one <= POINT for one in short), statistics.fmean(short)
        cells = [f"always {name}" if name else "**as recommended**", share(hits, len(short))]
        found.append((mean, [*cells, points(mean), points(max(short))]))
    rows = [row for _, row in sorted(found)]
    return markdown([["train with", "within a point of the best", "points behind", "most"], *rows])


def rate_table(records: Sequence[Record]) -> str:
    """Write how good the rate and its interval are, by kind of noise."""
    head = ["noise", "cases", "truth in the interval", "its mean width", "mean error"]
    rows = [[*head, "mean absolute error", "mean error, confident learning", "sure predictions"]]
    for name, part in grouped(records, "kind"):
        hits = sum(one["low"] <= one["truth"] <= one["high"] for one in part)
        width = statistics.fmean(one["high"] - one["low"] for one in part)
        errors = {
            what: statistics.fmean(one[what] - one["truth"] for one in part)
            for what in ("rate", "most", "sure")
        }
        size = statistics.fmean(abs(one["rate"] - one["truth"]) for one in part)
        cells = [name, str(len(part)), share(hits, len(part)), points(width)]
        cells += [f"{100 * errors['rate']:+.1f}", points(size)]
        rows.append([*cells, *(f"{100 * errors[what]:+.1f}" for what in ("most", "sure"))])
    return markdown(rows)


def suspects_table(records: Sequence[Record]) -> str:
    """Write precision and recall of the suspects, of cleanlab's, and by Bayes' rule."""
    rows = [["data", *(f"{who}: {what}" for who in SUSPECTS for what in ("wrong", "of all wrong"))]]
    for name, part in grouped(records, "data"):
        cells = [name]
        for who in SUSPECTS:
            flagged, right, wrong = (
                sum(column) for column in zip(*(one[who] for one in part), strict=True)
            )
            shares = (right / max(1, flagged), right / max(1, wrong))
            cells += [f"{100 * share:.1f} %" for share in shares]
        rows.append(cells)
    return markdown(rows)


def points(share: float) -> str:
    """Write a share in points."""
    return f"{100 * share:.1f}"


def grouped(records: Sequence[Record], name: str) -> list[tuple[str, list[Record]]]:
    """Group records by a field, all of them last."""
    groups: dict[str, list[Record]] = {}
    for one in records:
        groups.setdefault(one[name], []).append(one)
    return [*sorted(groups.items()), ("all", list(records))]


def tables(records: Sequence[Record], cases: Sequence[tuple[str, Case]]) -> str:
    """Write all tables, and how many of the cases they rest on."""
    planned, parts = Counter(what for what, _ in cases), []
    for what, about in ROUNDS.items():
        full = [one for one in records if one["what"] == what]
        if full:
            named = Counter(one["recommended"] for one in full).most_common()
            parts += [f"{len(full)} of {planned[what]} cases {about}:", advice_table(full)]
            parts += [fixed_table(full)]
            parts += ["Recommended: " + "; ".join(f"{name} ({n})" for name, n in named) + "."]
    audited = [one for one in records if one["what"] != "rate"]
    if audited:
        parts += ["Suspects in all of these:", suspects_table(audited)]
    rates = [one for one in records if one["what"] == "rate"]
    if rates:
        parts += [f"{len(rates)} of {planned['rate']} rate-only cases:", rate_table(rates)]
    return "\n\n".join(parts)


def write(page: Path, text: str) -> None:
    """Replace what stands between the two marks of a page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} must have the lines {BEGIN} and {END}")
    write_atomically(page, f"{before}{BEGIN}\n\n{text}\n\n{END}{after}".encode())


def main(words: Sequence[str] | None = None) -> int:
    """Do the cases, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, default=CASES, help="which, in a JSON file")
    parser.add_argument("--only", choices=tuple(DO), help="full or rate-only cases alone")
    parser.add_argument("--limit", type=int, help="the most cases to do now, 0 for tables alone")
    parser.add_argument("--again", action="store_true", help="also those that are committed")
    parser.add_argument("--work", type=Path, default=WORK, help="where finished cases are kept")
    parser.add_argument("--records", type=Path, default=RECORDS, help="the committed ones")
    parser.add_argument("--pack", action="store_true", help="write the committed ones anew")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/audit.md")
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    cases = read_cases(options.cases)
    known = read_records(None if options.again else options.records, options.work)
    done = {key_of(one) for one in known}
    todo = [one for one in cases if key(*one) not in done and options.only in (None, one[0])]
    wanted = {key(*one) for one in cases}
    records = run(todo[: options.limit], options.work, known)
    records = [one for one in records if key_of(one) in wanted]
    if options.pack:
        pack(records, options.records)
    text = tables(records, cases)
    print(text)
    if options.write:
        write(PAGE, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
