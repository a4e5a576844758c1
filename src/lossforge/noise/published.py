"""The label noise of released code, reproduced bit for bit: bugs, numpy seeds and all.

Use `corrupt` for new work. These functions exist so that published numbers can be matched; each
says what it does that its paper does not. They draw from numpy's legacy generator because the
released code does, and take the labels in the order of the official files.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from ..errors import check_number, extra
from .inject import Corruption, check_labels
from .transition import CIFAR10_FLIPS, check_rate, transition


def truncated_counts(labels: Tensor, T: Tensor, *, seed: int = 123) -> Corruption:
    """The noise of ANL and JAL ("method2"): every count T[i, j] n_i is cut to a whole number.

    Truncation loses noise: at nominal 0.2 CIFAR-10 has 0.1998 wrong labels and CIFAR-100 0.198,
    and a class with rate * n < K - 1 stays clean.
    """
    T = transition(T)
    check_labels(labels, len(T))
    state = extra("numpy.random", "bench").RandomState(seed)
    given = labels.clone()
    counts = [(row * (labels == true).sum()).long().tolist() for true, row in enumerate(T)]
    for true in range(len(T)):
        (left,) = torch.where(labels == true)
        for target, count in enumerate(counts[true]):
            if target != true and count:
                chosen = torch.as_tensor(state.choice(left.numpy(), count, replace=False))
                left = left[~torch.isin(left, chosen)]
                given[chosen] = target
    return Corruption(given, given != labels)


def equal_counts(labels: Tensor, num_classes: int, rate: float, *, seed: int = 123) -> Corruption:
    """The symmetric noise of APL, ALF, SR and SCE ("method1"): as many flips in every class.

    int(int(rate N) / K) samples of each class are flipped, whatever its size.
    """
    check_rate(rate)
    check_labels(labels, num_classes)
    state = extra("numpy.random", "bench").RandomState(seed)
    count = int(int(rate * len(labels)) / num_classes)
    smallest = int(torch.bincount(labels, minlength=num_classes).min())
    if count > smallest:
        raise ValueError(
            f"{count} labels of every class are to be flipped, and a class has {smallest}"
        )
    chosen = [
        state.choice(torch.where(labels == true)[0].numpy(), count, replace=False)
        for true in range(num_classes)
    ]
    given = labels.clone()
    for true, members in enumerate(chosen):
        others = [label for label in range(num_classes) if label != true]
        for member in members:
            given[member] = int(state.choice(others))
    return Corruption(given, given != labels)


def reflipped(
    labels: Tensor,
    rate: float,
    *,
    flips: Iterable[tuple[int, int]] = tuple(CIFAR10_FLIPS.items()),
    seed: int = 123,
) -> Corruption:
    """The asymmetric CIFAR-10 noise of APL, ALF, SR and eps-softmax, which flips some labels back.

    Each pair of classes is read from the labels as the pairs before have left them, so cats that
    became dogs become cats again when the dogs' turn comes: at nominal 0.4 only 0.24 of the cats
    are wrong, and 0.184 of all labels instead of 0.2.
    """
    check_rate(rate)
    flips = tuple(flips)
    check_labels(labels, max(10, *(1 + label for pair in flips for label in pair)))
    state = extra("numpy.random", "bench").RandomState(seed)
    given = labels.clone()
    for source, target in flips:
        members = torch.where(given == source)[0].numpy()
        chosen = state.choice(members, int(rate * len(members)), replace=False)
        given[torch.as_tensor(chosen)] = target
    return Corruption(given, given != labels)


def independent_draws(labels: Tensor, T: Tensor, *, seed: int = 0) -> Corruption:
    """Patrini's `multiclass_noisify`, which many copied: one multinomial draw per sample.

    Nothing is wrong with it but its fixed seed. APL's CIFAR-100 and every MNIST variant use it.
    """
    T = transition(T)
    check_labels(labels, len(T))
    state = extra("numpy.random", "bench").RandomState(seed)
    rows = T.numpy()
    drawn = [int(state.multinomial(1, rows[true]).argmax()) for true in labels.tolist()]
    given = torch.tensor(drawn, dtype=torch.int64)
    return Corruption(given, given != labels)


def part_dependent(
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    rate: float,
    *,
    std: float = 0.1,
    seed: int = 1,
) -> Corruption:
    """Xia's released instance noise; `lossforge.noise.part_dependent` is the same without numpy.

    It feeds raw 0..255 pixels, for which the wrong class is a function of the image.
    """
    check_rate(rate)
    check_number("std", std, "positive", lambda std: std > 0)
    check_labels(labels, num_classes)
    state = extra("numpy.random", "bench").RandomState(seed)
    truncnorm = extra("scipy.stats", "bench").truncnorm
    bounds = (0 - rate) / std, (1 - rate) / std
    flip = torch.as_tensor(
        truncnorm(*bounds, loc=rate, scale=std).rvs(len(labels), random_state=state)
    )
    flat = features.flatten(1).float()
    weights = torch.as_tensor(state.randn(num_classes, flat.shape[1], num_classes)).float()
    given = labels.clone()
    for i, true in enumerate(labels.tolist()):
        scores = flat[i] @ weights[true]
        scores[true] = -torch.inf
        probs = flip[i] * scores.softmax(0)
        probs[true] += 1 - flip[i]
        given[i] = int(state.choice(num_classes, p=probs.numpy()))
    return Corruption(given, given != labels)
