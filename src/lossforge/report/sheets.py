"""What a reader sees of results: rows of short texts, whatever they are then written in."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .results import Results
from .statistics import Difference, Ranking
from .tables import Cell, Table


@dataclass(frozen=True)
class Entry:
    """One field.

    Args:
        text: What it says.
        bold: Whether it is among the best.
        aside: A second, lesser text, such as the paper's number.
        value: What to sort by; None comes last.
        tone: "better", "worse", "level", or nothing.
    """

    text: str
    bold: bool = False
    aside: str = ""
    value: float | None = None
    tone: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table of texts.

    Args:
        title: One line that says what the numbers are.
        head: Names of the columns, that of the row names included.
        names: Names of the rows.
        rows: The fields of every row.
        notes: Sentences below.
    """

    title: str
    head: Sequence[str]
    names: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    notes: Sequence[str] = ()

    @property
    def has_bold(self) -> bool:
        return any(entry.bold for row in self.rows for entry in row)


def accuracy_sheet(table: Table) -> Sheet:
    """A table of accuracies as texts."""
    return Sheet(
        title=table.title,
        head=["loss", *(column.label for column in table.columns)],
        names=table.losses,
        rows=[[_accuracy(cell, table.seeds, table.digits) for cell in row] for row in table.cells],
        notes=table.notes,
    )


def _accuracy(cell: Cell, seeds: int, digits: int) -> Entry:
    text = _number(cell.mean, cell.std, digits)
    if cell.n != seeds:
        text += f" ({cell.n}/{seeds})"
    aside = f"paper {_number(*cell.paper, digits)}" if cell.paper else ""
    return Entry(text, cell.bold, aside, cell.mean)


def _number(mean: float | None, std: float | None, digits: int) -> str:
    if mean is None:
        return "–"
    return f"{mean:.{digits}f}" if std is None else f"{mean:.{digits}f} ± {std:.{digits}f}"


def difference_sheet(results: Results, other: str, differences: Iterable[Difference]) -> Sheet:
    """Differences to one loss: losses in rows, settings in columns."""
    title = f"Difference to {other} (points of %), with its 95 % interval over paired seeds"
    return _differences(results, title, differences, lambda difference: "")


def best_sheet(results: Results, differences: Iterable[Difference]) -> Sheet:
    """Differences to the best other loss of each setting."""
    title = "Difference to the best other loss (points of %), with its 95 % interval"
    return _differences(
        results, title, differences, lambda difference: f"against {difference.other}"
    )


def _differences(
    results: Results,
    title: str,
    differences: Iterable[Difference],
    aside: Callable[[Difference], str],
) -> Sheet:
    found = {(one.loss, one.column): one for one in differences}
    names = [loss for loss in results.losses if any(key[0] == loss for key in found)]
    rows = []
    for loss in names:
        row = [found.get((loss, column)) for column in results.columns]
        fields = [_difference(one, aside(one)) if one else Entry("–") for one in row]
        known = [one for one in row if one and one.low is not None]
        level = sum(one.verdict != "worse" for one in known)
        count = Entry(f"{level} of {len(known)}", value=level / len(known) if known else None)
        rows.append([count, *fields])
    pairs = sorted({one.n for one in found.values()})
    several = len(results.data) > 1
    head = [f"{c.data}: {c.label}" if several else c.label for c in results.columns]
    return Sheet(title, ["loss", "not worse", *head], names, rows, _pair_notes(pairs))


def _pair_notes(pairs: Sequence[int]) -> list[str]:
    """What to say of the numbers of pairs, from the fewest to the most."""
    if not pairs:
        return []
    notes = [f"n = {' to '.join(str(n) for n in dict.fromkeys((pairs[0], pairs[-1])))} pairs"]
    if pairs[0] < 2:
        notes.append("one pair has no interval")
    return [*notes, "not worse: the interval holds 0 or lies above it"]


def _difference(difference: Difference, aside: str) -> Entry:
    text = f"{difference.mean:+.2f}"
    if difference.low is not None:
        text += f" [{difference.low:+.2f}, {difference.high:+.2f}]"
    return Entry(text, aside=aside, value=difference.mean, tone=difference.verdict)


def rank_sheet(ranking: Ranking) -> Sheet:
    """Mean ranks, and what the tests say of them."""
    if ranking.p is None:
        verdict = "all losses are tied in every setting"
    else:
        verdict = f"Friedman: chi-squared {ranking.statistic:.2f}, p = {ranking.p:.2g}"
    notes = [
        verdict,
        f"Nemenyi: mean ranks further apart than {ranking.critical:.2f} differ at 5 %",
        "the tests take the settings as independent, which settings of one data set are not quite",
    ]
    if ranking.left_out:
        notes.append(f"not ranked, for want of a setting: {', '.join(ranking.left_out)}")
    return Sheet(
        f"Mean rank over {ranking.settings} settings (1 is best)",
        ["loss", "mean rank"],
        list(ranking.ranks),
        [[Entry(f"{rank:.2f}", value=rank)] for rank in ranking.ranks.values()],
        notes,
    )
