"""Random calls of losses against the contract of torch's cross entropy."""

import torch
from torch.nn.functional import cross_entropy

import lossforge

SIZE = 1_000_000


def attack(seed: int) -> list[str]:
    """Compare one call of `CE` with torch."""
    generator = torch.Generator().manual_seed(seed)
    rows, classes = torch.randint(1, 9, (2,), generator=generator).tolist()
    logits = torch.randn(rows, classes, generator=generator)
    target = torch.randint(classes, (rows,), generator=generator)
    actual, expected = lossforge.CE()(logits, target), cross_entropy(logits, target)
    if torch.allclose(actual, expected):
        return []
    return [
        f"CE is {actual:.9g}, cross entropy {expected:.9g}: {logits.tolist()} {target.tolist()}"
    ]
