"""The section on all of CIFAR-10: a head on patch features, beside the paper's numbers."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from results_agreement import Agreement, Correlation, agree, mean_ranks, with_paper
from results_claims import distance, standing_sentence, standings
from results_data import (
    BALANCE,
    OURS,
    PAGE_MEASURES,
    PARAMETERS,
    RATE,
    WHOLE,
    WORDS,
    Archive,
    Figures,
    folded,
    listed,
    paper_rows,
    provisional,
    results_of,
)
from results_tables import accuracy_lines, difference_sheet

from lossforge.report.figures import curves
from lossforge.report.formats import markdown
from lossforge.report.panels import figure_groups
from lossforge.report.results import Column, Results, noise_label
from lossforge.report.tables import Field, Sheet

KINDS = {
    "Clean labels and symmetric noise": ("clean", "symmetric"),
    "Asymmetric noise": ("asymmetric",),
    "Instance-dependent noise": ("instance",),
    "Human labels": ("human",),
}
FAR = 5.0  # places by which a loss's mean rank differs from the paper's
# the paper's figure of overfitting has GCE and NCE+AUL; cross entropy and ours stand beside them
MEMORISING, CURVES = "symmetric:0.8", ("CE", "GCE", "NCE+AUL", *OURS)
PROTOCOL = "benchmark-presets.md#cifar-10-on-patch-features"


def whole_section(archives: Mapping[str, Archive]) -> tuple[list[str], Figures]:
    """Write the section and its figures; nothing without runs."""
    if WHOLE not in archives:
        return [], {}
    archive, rows = archives[WHOLE], paper_rows()
    results = results_of(archive.records)
    found = with_paper(results, rows, "last")
    lines = [f"## {archive.header['title']}", "", *provisional(archive)]
    if found:
        lines += [*contradictions(found), markdown(agreement_sheet(results, rows)), ""]
    lines += [*_protocol(archive, results), standing_sentence(results), ""]
    for title, kinds in KINDS.items():
        part = [column for column in results.columns if column.noise.split(":")[0] in kinds]
        if part:
            tables = accuracy_lines(results.narrow(columns=part), {"rows": rows})
            lines += folded(f"{title}: all accuracies, the paper's in brackets", tables)
    sheet = difference_sheet(results)
    if sheet:
        lines += folded("BEF and BQF minus the best other loss", [markdown(sheet), ""])
    figures = _curves(results)
    lines += _pictures(
        figures,
        "Mean over seeds of the test accuracy, and of the share of wrong "
        "training labels that the network predicts.",
    )
    more, drawn = _parts(archives)
    return [*lines, *_rate(archives, results), *more], figures | drawn


def paper_sentences(archives: Mapping[str, Archive]) -> list[str]:
    """Say in the summary where BEF and BQF stand, and how the order compares with the paper's."""
    if WHOLE not in archives:
        return []
    results = results_of(archives[WHOLE].records)
    found = with_paper(results, paper_rows(), "last")
    if not found:
        return []
    places = [
        f"{one.loss} has place {one.place} of {one.ranked} by mean rank and is at worst "
        f"{distance(one.worst)} the best other loss"
        for one in standings(results, "last").values()
    ]
    texts = [*places, _verdicts(found, name_unclear=False)]
    return [f"{archives[WHOLE].header['title']}: {'; '.join(texts)}"]


def contradictions(found: Sequence[Agreement]) -> list[str]:
    """Say first where our order of the losses contradicts the paper's, if it does."""
    against = any(one.spearman.verdict == "contradicts" for one in found)
    title = "Where the ranks contradict the paper's" if against else "Ranks beside the paper's"
    first = _verdicts(found)
    points = [first[0].upper() + first[1:], *_best_places(found), *_moved(found)]
    return [f"**{title}:**", "", *(f"- {p}" for p in points), ""]


def _verdicts(found: Sequence[Agreement], *, name_unclear: bool = True) -> str:
    """Group the settings by the verdict on their order; unclear ones may stay unnamed."""
    by_verdict: dict[str, list[str]] = {}
    for one in found:
        by_verdict.setdefault(one.spearman.verdict, []).append(one.column.setting)
    words = {
        "contradicts": "is negatively correlated with the paper's",
        "unclear": "shows no clear relation to the paper's",
        "agrees": "is positively correlated with the paper's",
        "unknown": "has no interval",
    }
    parts = []
    for verdict, text in words.items():
        if verdict in by_verdict:
            names = by_verdict[verdict]
            named = f" ({listed(names)})" if name_unclear or verdict != "unclear" else ""
            parts.append(f"in {len(names)}{named} it {text}")
    return (
        f"the order of the losses was compared with {len(found)} columns of the paper's tables: "
        f"{'; '.join(parts)} (95 % interval of Spearman's correlation)."
    )


def _best_places(found: Sequence[Agreement]) -> Iterator[str]:
    """Say how often BEF or BQF is first, in the paper and here, and what is first instead."""
    here, there = ([_first(side) for side in sides] for sides in _sides(found))
    ours, theirs = (sum(loss in OURS for loss in side) for side in (here, there))
    others: dict[str, int] = {}
    for loss in here:
        if loss not in OURS:
            others[loss] = others.get(loss, 0) + 1
    ordered = sorted(others.items(), key=lambda item: -item[1])
    instead = f"; first here: {listed([f'{name} ({n})' for name, n in ordered])}" if others else ""
    yield (
        f"{' or '.join(OURS)} is the best loss in {theirs or 'none'} of these {len(found)} columns "
        f"of the paper and in {ours or 'none'} here{instead}."
    )


def _sides(found: Sequence[Agreement]) -> tuple[list[Mapping[str, float]], ...]:
    return [one.ours for one in found], [one.theirs for one in found]


def _first(ranks: Mapping[str, float]) -> str:
    return min(ranks, key=lambda loss: ranks[loss])


def _moved(found: Sequence[Agreement]) -> Iterator[str]:
    """Name the losses whose mean rank is far from the paper's."""
    pairs = mean_ranks(found)
    far = {loss: pair for loss, pair in pairs.items() if abs(pair[0] - pair[1]) >= FAR}
    ordered = sorted(far.items(), key=lambda item: item[1][0] - item[1][1])
    moved = [f"{loss} {theirs:.1f} → {ours:.1f}" for loss, (ours, theirs) in ordered]
    if moved:
        yield (
            f"Mean ranks over these columns that move by {FAR:g} places or more from the paper to "
            f"here: {listed(moved)}."
        )
    kept = [f"{x} {pairs[x][1]:.1f} → {pairs[x][0]:.1f}" for x in OURS if x in pairs.keys() - far]
    if kept:
        yield f"Mean ranks that move by less: {listed(kept)}."


def agreement_sheet(results: Results, rows: Sequence[Mapping[str, Any]]) -> Sheet:
    """List the rank correlations with the paper, noise by noise."""
    by_measure = {
        measure: {one.column: one for one in with_paper(results, rows, measure)}
        for measure in PAGE_MEASURES
    }
    columns = [c for c in results.columns if any(c in found for found in by_measure.values())]
    fields = []
    for column in columns:
        known = [found.get(column) for found in by_measure.values()]
        count = max(len(one.ours) for one in known if one)
        cells = [
            Field(_correlation(getattr(one, name)) if one else "–")
            for one in known
            for name in ("spearman", "kendall")
        ]
        fields.append([Field(str(count)), *cells])
    head = ["noise", "losses"]
    for measure in by_measure:
        head += [f"Spearman, {WORDS[measure]}", f"Kendall, {WORDS[measure]}"]
    notes = [
        "The paper's numbers are of the last epoch. Intervals (95 %, Fisher's z) are over losses: "
        "they describe how well other, similar losses would agree. They assume independent losses; "
        "CE and FL, for example, are not, so the intervals are too narrow. Seeds are averaged "
        "before ranking."
    ]
    title = "Rank correlation with the paper's table"
    return Sheet(title, head, [column.label for column in columns], fields, notes)


def _correlation(one: Correlation) -> str:
    text = f"{one.value:+.2f}"
    return text if one.low is None else f"{text} [{one.low:+.2f}, {one.high:+.2f}]"


def _protocol(archive: Archive, results: Results) -> list[str]:
    training = archive.records[0].spec["training"]
    clean = [c for c in results.columns if c.noise == "clean"]
    level = results.means(clean[0]).get("CE") if clean else None
    reached = f" CE on clean labels reaches {level:.1f} %." if level is not None else ""
    return [
        f"{len(results.losses)} losses, {len(results.columns)} settings, "
        f"{'seed' if len(results.seeds) == 1 else 'seeds'} "
        f"{listed([str(seed) for seed in results.seeds])}, {training['epochs']} epochs. **The "
        "level is not the paper's**: a head of one hidden layer is trained on frozen features; the "
        "paper trains a convolutional network. The images at hand are JPEG-compressed copies "
        f"of the official ones.{reached} So compare the order of the losses, not the numbers.",
        "",
        "The learning rate was chosen by cross entropy on clean labels, which does not separate "
        f"{training['lr']:g} from three times as much. One run each of CE and BEF at symmetric 0.4 "
        "was known at both rates; BEF is better at the smaller one, so the choice favours it "
        f"([how it was chosen]({PROTOCOL})).",
        "",
    ]


def _rate(archives: Mapping[str, Archive], results: Results) -> list[str]:
    """Compare with the same runs at the other learning rate."""
    if RATE not in archives:
        return []
    again = archives[RATE].records
    wanted = {(run.spec["noise"], run.spec["seed"]) for run in again}
    first = [r for r in results.records if (r.spec["noise"], r.spec["seed"]) in wanted]
    if not first:
        return []
    both = results_of([*first, *again])
    rates = [f"{runs[0].spec['training']['lr']:g}" for runs in (first, again)]
    points = []
    for noise in dict.fromkeys(run.spec["noise"] for run in again):
        pair = [_at(both, noise, runs[0].spec["training"]["lr"]) for runs in (first, again)]
        if None in pair:
            continue
        ours, theirs = (both.means(column) for column in pair)
        one = agree(pair[0], ours, theirs)
        if one:
            places = listed(
                [f"{x} {one.ours[x]:g} → {one.theirs[x]:g}" for x in OURS if x in one.ours]
            )
            points.append(
                f"{noise_label(noise)}: Spearman's correlation of the two orders is "
                f"{_correlation(one.spearman)}; places of {len(one.ours)} at {rates[0]} → "
                f"{rates[1]}: {places}."
            )
    return [
        f"### At a learning rate of {rates[1]} in place of {rates[0]}",
        "",
        *provisional(archives[RATE]),
        *(f"- {point}" for point in points),
        "",
        *folded(f"Accuracies at {rates[0]} and {rates[1]}, same seeds", accuracy_lines(both)),
    ]


def _at(results: Results, noise: str, lr: float) -> Column | None:
    for column in results.columns:
        runs = [run for loss in results.losses for run in results.runs(loss, column).values()]
        if column.noise == noise and runs and runs[0].spec["training"]["lr"] == lr:
            return column
    return None


def _curves(results: Results) -> Figures:
    """Draw learning and memorising curves under one severe noise."""
    columns = [column for column in results.columns if column.noise == MEMORISING]
    figures: Figures = {}
    for column in columns[:1]:
        runs = {
            loss: [run for run in results.runs(loss, column).values() if not run.failed]
            for loss in CURVES
            if loss in results.losses
        }
        runs = {loss: cell for loss, cell in runs.items() if cell}
        accuracy = {loss: [run.curve(column.test) for run in cell] for loss, cell in runs.items()}
        fit = {
            loss: [[epoch.get("noise_fit") for epoch in run.metrics] for run in cell]
            for loss, cell in runs.items()
        }
        if accuracy:
            title = f"Test accuracy, {column.setting}"
            figures["results-cifar10-accuracy.svg"] = partial(
                curves, accuracy, title=title, ylabel="accuracy (%)", names=CURVES
            )
        if any(None not in line for lines in fit.values() for line in lines):
            title = f"Wrong labels fitted, {column.setting}"
            figures["results-cifar10-noise-fit.svg"] = partial(
                curves, fit, title=title, ylabel="share (%)", names=CURVES
            )
    return figures


def _parts(archives: Mapping[str, Archive]) -> tuple[list[str], Figures]:
    """Show the balances and the map of parameters with the figures of `lossforge report`."""
    lines: list[str] = []
    figures: Figures = {}
    for name, kinds in ((BALANCE, ("ablation", "balance")), (PARAMETERS, ("parameters",))):
        if name not in archives:
            continue
        archive = archives[name]
        results = results_of(archive.records)
        lines += [f"### {archive.header['title']}", "", *provisional(archive)]
        for group in figure_groups(results):
            if group.kind in kinds:
                drawn = {
                    f"results-{name}-{panel.name}.svg": partial(panel.draw, True)
                    for panel in group.panels
                }
                lines += _pictures(drawn, group.caption)
                figures |= drawn
        lines += folded("Accuracies", accuracy_lines(results))
    return lines, figures


def _pictures(figures: Figures, caption: str) -> list[str]:
    """Show figures in one paragraph, side by side where there is room."""
    lines = []
    for name in figures:
        label = name.removeprefix("results-").removesuffix(".svg").replace("-", " ")
        lines.append(f"![{label}](images/{name})")
    return [*lines, "", caption, ""] if figures else []
