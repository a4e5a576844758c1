"""Small labelled data, and findings about them without a network."""

import csv

import torch

from lossforge.audit import Audit, Method, Subject, estimate
from lossforge.audit.audit import find_suspects
from lossforge.audit.candidates import certify_candidates, recommend
from lossforge.data import Dataset, Split
from lossforge.noise import corrupt, symmetric

CLASSES = ("cat", "dog", "<cow>")


def labels(n=150, T=None, seed=0):
    """True labels in turn, and given ones with noise."""
    true = torch.arange(n) % len(CLASSES)
    T = symmetric(len(CLASSES), 0.2) if T is None else T
    given = corrupt(true, T, generator=torch.Generator().manual_seed(seed), exact=True).labels
    return true, given


def posterior(true, T, sharpness=1.0):
    """What a network that knows the true class predicts of noisy labels, a little blurred."""
    blur = 0.05 * torch.rand(len(true), len(T), generator=torch.Generator().manual_seed(1))
    probs = T[true] ** sharpness + blur
    return (probs / probs.sum(1, keepdim=True)).double()


def subject(given, **fields):
    inputs = torch.zeros(len(given), 2)
    dataset = Dataset("animals", CLASSES, Split(inputs, given), {})
    usual = {"where": lambda row: f"animals.csv:{row + 2}", "text": lambda row: f"<b>no {row}</b>"}
    return Subject("animals.csv", "table", dataset, **{**usual, **fields})


def finding(losses=("BEF", "GCE", "CE"), T=None, repeats=1, **fields):
    """An audit of labels whose noise is known, as if a network had seen them."""
    T = symmetric(len(CLASSES), 0.2) if T is None else T
    true, given = labels(T=T)
    return finding_about(subject(given, **fields), posterior(true, T), losses, repeats)


def finding_about(about, probs, losses=("BEF", "GCE", "CE"), repeats=1):
    """An audit of a subject, with these probabilities out of fold."""
    generator = torch.Generator().manual_seed(0)
    found = estimate([probs] * repeats, about.given, generator=generator, resamples=20)
    candidates = certify_candidates(losses, found)
    method = Method("mlp", "CE", 5, repeats, (4, 9), 0.8, 0, 1.5)
    suspects = tuple(find_suspects(probs, about))
    advice = recommend(candidates, found)
    return Audit(about, method, found, tuple(candidates), advice, suspects)


def write_csv(path, rows, header=("size", "weight", "label"), encoding="utf-8"):
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file).writerows([header, *rows])
    return path


def animals(n=120, seed=0):
    """Rows of two measurements and a label, a tenth of the labels wrong."""
    draw = torch.Generator().manual_seed(seed)
    true = torch.arange(n) % 3
    points = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])[true]
    points = points + 0.5 * torch.randn(n, 2, generator=draw)
    given = corrupt(true, symmetric(3, 0.1), generator=draw, exact=True).labels
    names = ("cat", "dog", "cow")
    return [(f"{a:.3f}", f"{b:.3f}", names[k]) for (a, b), k in zip(points, given, strict=True)]
