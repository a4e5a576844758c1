"""What the runs show, in sentences: which loss leads, how surely, and what to try next."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ..benchmark.records import Measure
from ..benchmark.statistics import half_width
from .results import Results
from .statistics import Difference, Ranking

NOTABLE = 1.0  # points: whoever chooses a loss cares about such a difference
MORE_SEEDS = (5, 10)  # numbers of seeds to suggest


@dataclass(frozen=True)
class Finding:
    """The sentences at the top of a report, and the losses they are about.

    Args:
        leaders: The losses with the best mean rank, or the highest mean accuracy.
        sentence: Which loss leads, by how much.
        certainty: How much of that is more than luck; may be empty.
        hint: What this number of seeds cannot show; empty if it shows a notable difference.
        seeds: The seeds that would show it; empty without a hint.
        caveat: Why the figures are too low; may be empty.
    """

    leaders: Sequence[str]
    sentence: str
    certainty: str
    hint: str
    seeds: Sequence[int]
    caveat: str = ""


def find(
    results: Results,
    ranking: Ranking | None,
    other: str,
    differences: Sequence[Difference],
    measure: Measure = "last",
) -> Finding:
    """Say what the runs show.

    Args:
        results: The runs.
        ranking: The ranks of the losses, if there are enough settings.
        other: The baseline.
        differences: Paired differences of the losses to the baseline.
        measure: Which accuracy of a run is compared.
    """
    means = _means(results, measure)
    if ranking:
        best = min(ranking.ranks.values())
        leaders = [loss for loss, rank in ranking.ranks.items() if rank == best]
        sentence = _rank_sentence(ranking, leaders)
    else:
        best = max(means.values(), default=0.0)
        leaders = [loss for loss, mean in means.items() if mean == best]
        sentence = _mean_sentence(results, means, leaders)
    ours = [one for one in differences if one.loss == leaders[0]] if leaders else []
    if ours:
        subject = f"{leaders[0]} " if len(leaders) > 1 else ""
        points = _points(statistics.fmean(one.mean for one in ours))
        sentence += f", {subject}{points} {other}"
        sentence += " on average" if len(ours) > 1 else ""
    resolution = visible_difference(differences)
    seeds, hint = _more_seeds(results, resolution)
    certainty = _certainty(ranking, leaders, ours)
    return Finding(leaders, f"{sentence}.", certainty, hint, seeds, _caveat(results))


def _caveat(results: Results) -> str:
    """Say that test labels may be wrong, and how to test on checked ones, where that is so."""
    names = {record.spec["data"] for record in results.records if record.tested_as_given}
    if not names:
        return ""
    is_folder = all(name.endswith("/") for name in names)
    advice = "A folder `test` beside `train`" if is_folder else "`--true COLUMN`"
    text = "Tested on labels as given; wrong ones among them lower every figure."
    return f"{text} {advice} tests on checked labels."


def _means(results: Results, measure: Measure) -> dict[str, float]:
    """Return the mean accuracy of the losses that have the most settings."""
    found: dict[str, list[float]] = {}
    for loss in results.losses:
        cells = [results.values(loss, column, measure) for column in results.columns]
        found[loss] = [statistics.fmean(cell.values()) for cell in cells if cell]
    most = max(map(len, found.values()))
    return {loss: statistics.fmean(v) for loss, v in found.items() if v and len(v) == most}


def _rank_sentence(ranking: Ranking, leaders: Sequence[str]) -> str:
    rank, count = ranking.ranks[leaders[0]], len(ranking.ranks)
    where = f"of {count} losses over {ranking.settings} settings ({rank:.1f})"
    verb = "has" if len(leaders) == 1 else "share"
    return f"{_listed(leaders)} {verb} the best mean rank {where}"


def _mean_sentence(results: Results, means: dict[str, float], leaders: Sequence[str]) -> str:
    if not leaders:
        return "No run has an accuracy to compare"
    columns = results.columns
    where = f"over {len(columns)} settings" if len(columns) > 1 else f"({columns[0].label})"
    if len(means) == 1:
        return f"{leaders[0]} reaches {means[leaders[0]]:.1f} % {where}"
    verb = "has" if len(leaders) == 1 else "share"
    best = f"the highest accuracy of {len(means)} losses"
    return f"{_listed(leaders)} {verb} {best}, {means[leaders[0]]:.1f} % {where}"


def _points(difference: float) -> str:
    side = "above" if difference >= 0 else "below"
    return f"{abs(difference):.1f} points {side}"


def _certainty(ranking: Ranking | None, leaders: Sequence[str], ours: Sequence[Difference]) -> str:
    """Count where the leader is surely better than the baseline, and who is level with it."""
    parts = []
    known = [one for one in ours if one.low is not None]
    if known:
        surely = sum(one.verdict == "better" for one in known)
        parts.append(
            f"{leaders[0]} is better than {known[0].other} beyond luck in {surely} of "
            f"{len(known)} {_plural('setting', len(known))} (95 % interval)"
        )
    if ranking:
        best = ranking.ranks[leaders[0]]
        level = [
            loss
            for loss, rank in ranking.ranks.items()
            if loss not in leaders and rank - best < ranking.critical
        ]
        total = len(ranking.ranks) - len(leaders)
        if level and len(level) == total:
            parts.append("no other loss is significantly worse by rank (Nemenyi, 5 %)")
        elif level:
            others = f"{len(level)} of the {total} other losses"
            parts.append(f"{others} are not significantly worse by rank (Nemenyi, 5 %)")
    return f"{'; '.join(parts)}." if parts else ""


def visible_difference(differences: Sequence[Difference]) -> tuple[int, float] | None:
    """Return how many pairs there are, and the median half width of their intervals in points.

    Smaller differences are lost in the luck of the seeds.
    """
    known = [one for one in differences if one.low is not None and one.high is not None]
    if not known:
        return None
    widths = [(one.high - one.low) / 2 for one in known]  # type: ignore[operator]
    return max(one.n for one in known), statistics.median(widths)


def _more_seeds(
    results: Results, resolution: tuple[int, float] | None
) -> tuple[Sequence[int], str]:
    """Suggest seeds with which a notable difference would show, and say why."""
    if len(results.losses) < 2:
        return [], ""
    if resolution is None:
        return _extended(results.seeds, MORE_SEEDS[0]), (
            f"{len(results.seeds)} {_plural('seed', len(results.seeds))}: no difference can be "
            "told from luck here"
        )
    n, width = resolution
    if width <= NOTABLE:
        return [], ""
    deviation = width / half_width(n)
    reached = {count: deviation * half_width(count) for count in MORE_SEEDS if count > n}
    enough = [count for count, after in reached.items() if after <= NOTABLE]
    text = f"{n} seeds: differences under {width:.1f} points cannot be seen here"
    if not reached:
        return [], text
    more = enough[0] if enough else max(reached)
    return _extended(results.seeds, more), f"{text}; {more} seeds would show {reached[more]:.1f}"


def _extended(seeds: Sequence[int], count: int) -> list[int]:
    """Continue the seeds, so that the runs that are there count."""
    return [*seeds, *range(max(seeds) + 1, max(seeds) + 1 + count - len(seeds))]


def seeds_text(seeds: Sequence[int]) -> str:
    """Write seeds as `--seeds` reads them, three and more that follow each other as a range.

    >>> seeds_text([0, 3, 4, 5, 6, 8, 9])
    '0,3:7,8,9'
    """
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    words = [[f"{r[0]}:{r[-1] + 1}"] if len(r) > 2 else map(str, r) for r in runs]
    return ",".join(word for part in words for word in part)


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
