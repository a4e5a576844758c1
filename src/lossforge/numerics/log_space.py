"""Sums in log space."""

import torch
from torch import Tensor


def log_sum(terms: Tensor) -> Tensor:
    """log sum_i exp(terms_i) over the last axis; -inf, with gradient 0, if all terms are."""
    empty = (terms == -torch.inf).all(-1)
    # the derivative of logsumexp is NaN where nothing is summed
    total = torch.logsumexp(torch.where(empty[..., None], 0.0, terms), -1)
    return torch.where(empty, -torch.inf, total)
