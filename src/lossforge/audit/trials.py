"""How well a network learns from these labels with one loss or another."""

import math
from collections.abc import Callable, Sequence

from torch import Tensor

from ..benchmark.prepare import samples
from ..catalog import parse
from ..data import Dataset, subset
from ..training import Diverged, State, train
from .folds import fresh_network, make_folds, predict, settings_for

ENOUGH = 2000  # held-out labels; the standard error of a share of them is about a point
LEAST_EPOCHS, MOST_EPOCHS = 20, 40
SLOWER = 3  # robust losses take more epochs than cross entropy stopped early does
LR = 2e-3


def try_losses(
    losses: Sequence[str],
    dataset: Dataset,
    *,
    folds: int,
    epochs: int,
    seed: int,
    device: str = "cpu",
    on_share: Callable[[int, float], object] | None = None,
) -> dict[str, float]:
    """Train networks with each loss on all folds but one, and predict the labels of that one.

    So many folds are held out in turn as make 2,000 labels, or all. All losses start from the same
    weights and see the same batches, and are judged after the last epoch, as they would be used.

    Args:
        losses: Losses or expressions.
        dataset: Its training split is used, given labels only.
        folds: Of the division.
        epochs: How long to train.
        seed: Of the division, weights and batch order.
        device: Where to train.
        on_share: Called after every epoch with the place of the loss in the list, and the share of
            its work that is done.

    Returns:
        For each loss, the share of held-out labels that are the likeliest class.
    """
    assigned = make_folds(dataset.train.given, folds, seed)
    held = min(folds, math.ceil(ENOUGH * folds / len(assigned)))

    def hits(place: int, fold: int) -> Tensor:
        def hear(state: State) -> None:
            if on_share is not None:
                on_share(place, (fold + state.epoch / epochs) / held)

        inside, outside = (part.nonzero()[:, 0] for part in (assigned == fold, assigned != fold))
        seen, rest = (samples(dataset, subset(dataset.train, rows)) for rows in (outside, inside))
        model = fresh_network(dataset, folds * seed + fold)
        settings = settings_for(len(seen), epochs, lr=LR, schedule="cosine")
        loss = parse(losses[place])
        try:
            train(model, loss, seen, {}, settings, seed=seed, device=device, on_epoch=hear)
        except Diverged:
            return rest.given < 0  # predicts nothing right
        return predict(model, rest, device).argmax(1) == rest.given

    shares = {}
    for place, loss in enumerate(losses):
        found = [hits(place, fold) for fold in range(held)]
        shares[loss] = sum(int(one.sum()) for one in found) / sum(map(len, found))
    return shares


def trial_epochs(stopped: Sequence[int], most: int) -> int:
    """How long to train with each loss, from when cross entropy was stopped.

    Args:
        stopped: The epoch of each fold.
        most: The most that a network may be trained for.
    """
    median = sorted(stopped)[len(stopped) // 2]
    return min(most, MOST_EPOCHS, max(LEAST_EPOCHS, SLOWER * median))
