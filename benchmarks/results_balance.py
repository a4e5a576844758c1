"""The section on the balance of target separation and binary reduction."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from results_data import (
    ABLATION,
    OURS,
    Archive,
    Figures,
    bracketed,
    folded,
    main_records,
    provisional,
    results_of,
)

from lossforge.benchmark.records import Record
from lossforge.benchmark.statistics import interval, paired_differences
from lossforge.report.figures import ablation
from lossforge.report.formats import markdown
from lossforge.report.results import Column, Results, setting_key
from lossforge.report.statistics import rank_losses
from lossforge.report.tables import Field, Sheet

SEPARATION, REDUCTION, DEFAULT = "TS alone", "BR alone", "default balance"


@dataclass(frozen=True)
class Family:
    """The balances of one loss.

    Args:
        name: BEF or BQF.
        results: Its rows, from target separation to binary reduction.
        roles: The row that has one of the three roles in a setting, by role and column key.
    """

    name: str
    results: Results
    roles: Mapping[tuple[str, str], str]

    def row(self, role: str, column: Column) -> str | None:
        return self.roles.get((role, column.key))


def families(archives: Mapping[str, Archive]) -> list[Family]:
    """Collect the balances of the ablation, with the default from the main runs if missing."""
    ablated = archives[ABLATION].records
    keys = {setting_key(record) for record in ablated}
    main = [r for r in main_records(dict(archives)) if r.spec["loss"] in OURS]
    whole = results_of([*ablated, *(record for record in main if setting_key(record) in keys)])
    usual = {}
    for record in main:
        share = _share_of(record)
        if share:
            usual[record.spec["data"], share[0]] = share[1]
    return [found for name in OURS if (found := _family(whole, name, usual))]


def _share_of(record: Record) -> tuple[str, float] | None:
    """Return the family of a loss and its share of target separation, lam / (lam + mu)."""
    if record.balance is None:
        return None
    family, lam, mu = record.balance
    return (family, lam / (lam + mu)) if lam + mu > 0 else None


def _share(results: Results, row: str, column: Column) -> tuple[str, float] | None:
    runs = list(results.runs(row, column).values())
    return _share_of(runs[0]) if runs else None


def _family(results: Results, name: str, usual: Mapping[tuple[str, str], float]) -> Family | None:
    shares: dict[str, float] = {}
    roles: dict[tuple[str, str], str] = {}
    for column in results.columns:
        here: dict[str, float] = {}
        for row in results.losses:
            found = _share(results, row, column)
            if found and found[0] == name:
                here[row] = found[1]
        default = usual.get((column.data, name), here.get(name))
        ends = {SEPARATION: 1.0, REDUCTION: 0.0, DEFAULT: default}
        for role, wanted in ends.items():
            # rows of the ablation first: the row of the main runs only fills in
            rows = sorted((r for r, s in here.items() if s == wanted), key=lambda r: r == name)
            if rows:
                roles[role, column.key] = rows[0]
        if roles.get((DEFAULT, column.key)) != name:
            here.pop(name, None)
        shares |= here
    if not shares:
        return None
    rows = sorted(shares, key=lambda row: -shares[row])
    return Family(name, results.narrow(losses=rows), roles)


def gains(family: Family, role: str) -> list[float]:
    """Subtract one term alone from the default balance: paired by seed, a mean per setting."""
    found = []
    for column in family.results.columns:
        ours, theirs = family.row(DEFAULT, column), family.row(role, column)
        if ours is None or theirs is None:
            continue
        pairs = paired_differences(*(family.results.values(row, column) for row in (ours, theirs)))
        if pairs:
            found.append(statistics.fmean(pairs))
    return found


def _gain(values: list[float]) -> str:
    return bracketed(statistics.fmean(values), *interval(values)) if values else "–"


def balance_sentence(found: list[Family]) -> str:
    """Say how much the default balance gains over each term alone."""
    parts = []
    for family in found:
        separation, reduction = gains(family, SEPARATION), gains(family, REDUCTION)
        if separation and reduction:
            parts.append(
                f"{family.name}'s default balance minus target separation alone is "
                f"{_gain(separation)} points over {len(separation)} settings, minus binary "
                f"reduction alone {_gain(reduction)}"
            )
    if not parts:
        return "There are no runs at the default balance to compare with."
    return f"{'; '.join(parts)} (95 % interval over settings)."


def balance_section(archives: Mapping[str, Archive]) -> tuple[list[str], Figures]:
    """Write the section and its figures."""
    found = families(archives)
    lines = [
        "## The balance of the two terms",
        "",
        *provisional(archives[ABLATION]),
        "BEF and BQF are lam * TS + mu * BR: target separation, which makes a loss robust, and "
        "binary reduction, which keeps it trainable. Rows are named by lam : mu; nothing else "
        "differs.",
        "",
        balance_sentence(found),
        "",
    ]
    figures = {
        f"results-balance-{data}.svg": partial(_figure, found, data)
        for data in dict.fromkeys(data for family in found for data in family.results.data)
    }
    for name in figures:
        data = name.removeprefix("results-balance-").removesuffix(".svg")
        lines += [f"![Accuracy against lam : mu on {data}](images/{name})", ""]
    if figures:
        lines += [
            "Accuracy of the last epoch, mean over the settings; bars: standard deviation over "
            "seeds.",
            "",
        ]
    sheets = [*map(_sheet, found), *([_gain_sheet(found)] if found else [])]
    tables = [line for sheet in sheets for line in (markdown(sheet), "")]
    return [*lines, *(folded("All balances", tables) if tables else [])], figures


def _sheet(family: Family) -> Sheet:
    results, rows = family.results, []
    ranking = rank_losses(results)
    for row in results.losses:
        places = {role for (role, _), name in family.roles.items() if name == row}
        rank = ranking.ranks.get(row) if ranking else None
        means = [_mean(results, row, data) for data in results.data]
        rows.append(
            [
                Field(", ".join(r for r in (SEPARATION, DEFAULT, REDUCTION) if r in places)),
                Field("–" if rank is None else f"{rank:.1f}"),
                *(Field("–" if mean is None else f"{mean:.1f}") for mean in means),
            ]
        )
    title = (
        f"{family.name}: mean rank among its {len(results.losses)} balances over "
        f"{len(results.columns)} settings, and mean accuracy (%) of the last epoch"
    )
    return Sheet(title, ["row", "", "mean rank", *results.data], results.losses, rows)


def _mean(results: Results, row: str, data: str) -> float | None:
    """Average over the settings of a data set; None if the row lacks one."""
    cells = [results.values(row, column) for column in results.columns if column.data == data]
    if not all(cells):
        return None
    return statistics.fmean(statistics.fmean(cell.values()) for cell in cells)


def _gain_sheet(found: list[Family]) -> Sheet:
    rows, names = [], []
    for family in found:
        names.append(family.name)
        separation, reduction = gains(family, SEPARATION), gains(family, REDUCTION)
        rows.append(
            [
                Field(_gain(separation)),
                Field(_gain(reduction)),
                Field(str(max(len(separation), len(reduction)))),
            ]
        )
    notes = [
        "Points of the last epoch. Runs are paired by setting and seed and averaged over seeds; "
        "the 95 % t interval is over settings. It assumes independent settings, which settings of "
        "one data set are not quite."
    ]
    head = ["loss", f"{DEFAULT} - {SEPARATION}", f"{DEFAULT} - {REDUCTION}", "settings"]
    return Sheet("Gain of the default balance over one term alone", head, names, rows, notes)


def _figure(found: list[Family], data: str) -> Any:
    """Draw accuracy against lam : mu: per seed, the mean over the settings of a data set."""
    drawn: dict[str, dict[tuple[float, float], list[float]]] = {}
    for family in found:
        columns = [column for column in family.results.columns if column.data == data]
        for row in family.results.losses:
            cells = [family.results.values(row, column) for column in columns]
            seeds = set.intersection(*(set(cell) for cell in cells)) if cells else set()
            if seeds:
                share = round(_share(family.results, row, columns[0])[1], 4)
                values = [statistics.fmean(cell[seed] for cell in cells) for seed in sorted(seeds)]
                drawn.setdefault(family.name, {})[share, round(1 - share, 4)] = values
    return ablation(drawn, title=f"{data}: mean over settings")
