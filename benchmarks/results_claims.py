"""The summary of the page, and its claim, computed: whether it holds, and by how much."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from results_choice import (
    NEAR,
    Behind,
    behind,
    behind_figure,
    choice_sentences,
    distance_sentence,
    reach_sentence,
)
from results_data import (
    CIFAR,
    EXTREMES,
    MARK,
    OURS,
    PAGE_MEASURES,
    WHOLE,
    WORDS,
    Archive,
    Figures,
    bracketed,
    depend_on_noise,
    folded,
    is_held_out,
    listed,
    main_records,
    results_of,
    subsets,
    where,
)

from lossforge.benchmark.records import Measure
from lossforge.report.formats import markdown
from lossforge.report.results import Results
from lossforge.report.statistics import Difference, differences_to_best, rank_losses
from lossforge.report.tables import Field, Sheet

WAYS = (
    "So measure on your own labels: [`lossforge audit`](audit.md) estimates how many are wrong and "
    "recommends how to train, [`lossforge tune`](tuning.md) searches parameters by held-out noisy "
    "labels, and [choose.md](choose.md) says where to start."
)
BEST_PLACES, MOST_BEHIND = 2, NEAR  # the claim: places among the ranks, points below the best


@dataclass(frozen=True)
class Standing:
    """One loss compared with the others over some settings.

    Args:
        loss: Its name.
        rank: Its mean rank.
        place: Its place by mean rank; equal ranks share a place.
        ranked: Number of ranked losses.
        others: Number of losses it is compared with: all but BEF and BQF.
        differences: Differences to the best of these others, in each setting.
    """

    loss: str
    rank: float
    place: int
    ranked: int
    others: int
    differences: Sequence[Difference]

    @property
    def worst(self) -> Difference:
        return min(self.differences, key=lambda one: one.mean)

    @property
    def below(self) -> list[Difference]:
        """Differences of settings in which the best other loss has a higher mean."""
        return [one for one in self.differences if one.mean < 0]

    @property
    def ranks_best(self) -> bool:
        return self.place <= BEST_PLACES

    @property
    def stays_close(self) -> bool:
        return self.worst.mean >= -MOST_BEHIND

    @property
    def holds(self) -> bool:
        return self.ranks_best and self.stays_close


def to_best_other(results: Results, loss: str, measure: Measure) -> list[Difference]:
    """Compare a loss with the best of all but BEF and BQF, setting by setting."""
    others = [name for name in results.losses if name not in OURS]
    return differences_to_best(results.narrow(losses=[loss, *others]), measure, losses=[loss])


def standings(results: Results, measure: Measure) -> dict[str, Standing]:
    """Compare BEF and BQF with the others; one that lacks a setting is left out."""
    ranking = rank_losses(results, measure)
    found = {}
    for loss in OURS:
        if ranking is None or loss not in ranking.ranks:
            continue
        rank = ranking.ranks[loss]
        place = 1 + sum(other < rank for other in ranking.ranks.values())
        others = sum(name not in OURS for name in results.losses)
        differences = to_best_other(results, loss, measure)
        if differences:
            found[loss] = Standing(loss, rank, place, len(ranking.ranks), others, differences)
    return found


def margin(points: float) -> str:
    """Format points with one decimal, or two where one would hide whether the claim holds."""
    return f"{points:.2f}" if 0 < abs(points - MOST_BEHIND) < 0.05 else f"{points:.1f}"


def distance(difference: Difference) -> str:
    """Put a difference in words."""
    if difference.mean < 0:
        return f"{margin(-difference.mean)} points below"
    return f"{difference.mean:.1f} points {'above' if difference.mean > 0 else 'from'}"


def verdict(found: Mapping[str, Standing]) -> str:
    """Say for which losses the claim holds: "holds for BEF and fails for BQF"."""
    kept = [loss for loss, one in found.items() if one.holds]
    failed = [loss for loss, one in found.items() if not one.holds]
    parts = [
        f"{word} for {listed(names)}"
        for word, names in (("holds", kept), ("fails", failed))
        if names
    ]
    return " and ".join(parts)


def detail(one: Standing) -> str:
    """Write the numbers behind a verdict."""
    worst = one.worst
    return (
        f"{one.loss} has mean rank {one.rank:.1f} (place {one.place} of {one.ranked}) and is at "
        f"worst {distance(worst)} the best of the other {one.others} ({where(worst.column)}, "
        f"{worst.other})"
    )


def claim_sentences(results: Results) -> list[str]:
    """Judge the claim on held-out and on searched settings, for both choices of the epoch."""
    others = sum(loss not in OURS for loss in results.losses)
    claim = (
        f'The claim "{listed(OURS)} have the two best mean ranks of {len(results.losses)} and '
        f'are never more than {MOST_BEHIND:g} points below the best of the other {others}"'
    )
    sentences = []
    parts = {name: part for name, part in subsets(results).items() if name != "all"}
    for name, part in parts.items():
        found = standings(part, "last")
        count = f"on the {len(part.columns)} {name} settings, last epoch,"
        missing = [f"{loss} lacks runs there" for loss in OURS if loss not in found]
        details = "; ".join([*(detail(one) for one in found.values()), *missing])
        judged = f"**{verdict(found)}**" if found else "cannot be judged"
        sentences.append(f"{'The same claim' if sentences else claim} {count} {judged}: {details}.")
    selected = {name: standings(part, "selected") for name, part in parts.items()}
    known = [
        f"{verdict(found)} on the {name} settings" for name, found in selected.items() if found
    ]
    if known:
        sentences.append(
            "With the epoch selected on noisy validation labels instead of the last one, it "
            f"{', and '.join(known)}."
        )
    return sentences


def losing_sentence(found: Mapping[str, Standing]) -> str:
    """Say where the losses are below the best other one, and by how much."""
    parts = []
    for one in found.values():
        total, below = len(one.differences), one.below
        count = f"{len(below) or 'none'} of the {total} settings"
        text = f"{one.loss} is below the best of the other {one.others} in {count}"
        if below:
            mean = -statistics.fmean(difference.mean for difference in below)
            clear = sum(difference.verdict == "worse" for difference in below)
            worst = one.worst
            text += (
                f", by {mean:.1f} points on average there and by {margin(-worst.mean)} at most "
                f"({where(worst.column)}, {worst.other}), with a 95 % interval below 0 in {clear} "
                "of them"
            )
        parts.append(text)
    return f"{'; '.join(parts)} (last epoch)." if parts else ""


def standing_sentence(results: Results) -> str:
    """Compare them with the other losses on one data set."""
    found = standings(results, "last")
    details = "; ".join(detail(one) for one in found.values())
    return f"Over {len(results.columns)} settings, last epoch: {details}." if found else ""


def side_sheet(archives: Mapping[str, Archive]) -> Sheet | None:
    """List places by mean rank and worst distances on data that do not count in the ranks."""
    names, rows = [], []
    for archive in archives.values():
        results = results_of(archive.records)
        found = standings(results, "last")
        if found:
            names.append(archive.header["title"])
            rows.append([Field(str(len(results.columns))), *_side_cells(found)])
    if not rows:
        return None
    head = ["data", "settings"]
    for loss in OURS:
        head += [f"place of {loss}", f"{loss} against the best other loss, at worst"]
    return Sheet("Data outside the mean ranks", head, names, rows)


def _side_cells(found: Mapping[str, Standing]) -> list[Field]:
    cells = []
    for loss in OURS:
        one = found.get(loss)
        cells.append(f"{one.place} of {one.ranked}" if one else "–")
        cells.append(f"{distance(one.worst)} ({one.worst.column.setting})" if one else "–")
    return [Field(text) for text in cells]


def rank_sentence(results: Results) -> str:
    """Give mean ranks and places on held-out and on searched settings, last epoch."""
    parts = []
    for name, part in subsets(results).items():
        ranking, found = rank_losses(part), standings(part, "last").values()
        if name != "all" and ranking and found:
            ordered = sorted(found, key=lambda one: one.rank)
            ranks = [f"{one.loss} {one.rank:.1f} (place {one.place})" for one in ordered]
            parts.append(
                f"{listed(ranks)} of {len(ranking.ranks)} on the {len(part.columns)} {name} "
                f"settings (differences below {ranking.critical:.1f} are not significant)"
            )
    return f"Mean ranks: {'; '.join(parts)}." if parts else ""


def short(archives: dict[str, Archive], more: Sequence[str] = ()) -> tuple[list[str], Figures]:
    """Write the summary, with its figure.

    Args:
        archives: All archives of the page.
        more: Sentences of other sections.
    """
    records = main_records(archives)
    if not records:
        return [], {}
    results = results_of(records)
    held = sum(is_held_out(column) for column in results.columns)
    intro = (
        f"{len(results.losses)} losses were run on {len(results.data)} data sets in "
        f"{len(results.columns)} settings (a data set with a noise) with {len(results.seeds)} "
        f"seeds, {len(records):,} runs; {held} of the settings, marked {MARK}, were kept out of "
        f"every search for the defaults of {listed(OURS)}."
    )
    sides = {name: archives[name] for name in (WHOLE, CIFAR, *EXTREMES) if name in archives}
    found = behind(results)
    known = {}
    for name, one in sides.items():
        side = results_of(one.records)
        judged = behind(side)
        if judged and len(judged.fixed) == len(side.losses):
            known[name] = judged
    points = [
        intro,
        *([reach_sentence(found)] if found else []),
        " ".join(filter(None, [distance_sentence(found) if found else "", rank_sentence(results)])),
        *(choice_sentences(found, known, _independent_of_noise(results)) if found else []),
        WAYS,
        *more,
        _provisional(archives),
    ]
    figures = behind_figure(found) if found else {}
    pictures = [f"![Points behind the best loss of a setting](images/{name})" for name in figures]
    lines = [*pictures, "", "## In short", "", *(f"- {point}" for point in points if point), ""]
    sheet = side_sheet(sides)
    aside = folded(sheet.title, [markdown(sheet), ""]) if sheet else []
    return [*lines, *aside, *_claim(results)], figures


def _independent_of_noise(results: Results) -> Behind | None:
    """Compare the losses whose parameters do not depend on the noise, if others do."""
    depend = depend_on_noise(results.records)
    rest = [loss for loss in results.losses if loss not in depend]
    return behind(results.narrow(losses=rest)) if depend and rest else None


def _claim(results: Results) -> list[str]:
    """Write every number that the claim rests on."""
    points = [*claim_sentences(results), losing_sentence(standings(results, "last"))]
    sheet = claim_sheet(results)
    lines = [*(f"- {point}" for point in points if point), ""]
    return folded("The claim in numbers", [*lines, *([markdown(sheet), ""] if sheet else [])])


def _provisional(archives: Mapping[str, Archive]) -> str:
    missing = [f"{a.unfinished} of {name}" for name, a in archives.items() if a.unfinished]
    return f"Provisional: {listed(missing)} are not finished." if missing else ""


def claim_sheet(results: Results) -> Sheet | None:
    """List every number that the claim rests on."""
    names, rows = [], []
    for measure in PAGE_MEASURES:
        for name, part in subsets(results).items():
            for one in standings(part, measure).values():
                names.append(f"{one.loss}, {name} settings, {WORDS[measure]}")
                rows.append(_claim_row(one))
    if not rows:
        return None
    head = [
        "",
        "settings",
        "mean rank",
        "place",
        "below the best other",
        "of these significant",
        "worst",
        "claim",
    ]
    notes = [
        f"The best other loss is the best of all but {listed(OURS)} in a setting, chosen after "
        "the fact. Significant: the 95 % interval over paired seeds lies below 0. Worst: the "
        "lowest mean difference, with that interval."
    ]
    return Sheet("The claim in numbers", head, names, rows, notes)


def _claim_row(one: Standing) -> list[Field]:
    worst = one.worst
    why = []
    if not one.ranks_best:
        why.append("rank")
    if not one.stays_close:
        why.append("distance")
    texts = [
        str(len(one.differences)),
        f"{one.rank:.1f}",
        f"{one.place} of {one.ranked}",
        str(len(one.below)),
        str(sum(difference.verdict == "worse" for difference in one.below)),
        f"{bracketed(worst.mean, worst.low, worst.high)} ({where(worst.column)}, {worst.other})",
        "holds" if one.holds else f"fails: {listed(why)}",
    ]
    return [Field(text) for text in texts]
