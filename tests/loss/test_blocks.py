"""Cutting the work into blocks, to save memory, changes nothing."""

import torch
from cases import OVER_CONSTRUCTIONS, Case
from laws import assert_close, batch, value_and_gradient

from lossforge.loss import loss as loss_module
from lossforge.numerics import rows


@OVER_CONSTRUCTIONS
def test_blocks_of_rows_change_neither_value_nor_gradient(case: Case, monkeypatch) -> None:
    logits, target = batch(n=7)
    loss = case.make().with_policy(reduction="none")
    whole = value_and_gradient(lambda z: loss(z, target), logits)
    monkeypatch.setattr(rows, "_BLOCK", 2 * logits.shape[1])
    for cut, reference in zip(
        value_and_gradient(lambda z: loss(z, target), logits), whole, strict=True
    ):
        assert_close(cut, reference)


@OVER_CONSTRUCTIONS
def test_blocks_of_classes_change_neither_value_nor_gradient(case: Case, monkeypatch) -> None:
    logits, _ = batch()
    target = torch.rand_like(logits).softmax(-1)
    loss = case.make().with_policy(reduction="none")
    whole = value_and_gradient(lambda z: loss(z, target), logits)
    monkeypatch.setattr(loss_module, "_DENSE_BLOCK", 2 * logits.numel())
    for cut, reference in zip(
        value_and_gradient(lambda z: loss(z, target), logits), whole, strict=True
    ):
        assert_close(cut, reference)


def test_dense_targets_keep_no_pairs_for_the_backward_pass(monkeypatch) -> None:
    """What autograd saves for BR under probability targets grows like K, not like K squared."""
    from lossforge import BinaryReduction, base

    loss = BinaryReduction(base.Power(0.7))

    def saved(classes: int) -> int:
        monkeypatch.setattr(loss_module, "_DENSE_BLOCK", 4 * classes)
        logits = torch.randn(4, classes, requires_grad=True)
        target = torch.full_like(logits, 1 / classes)
        seen: dict[int, int] = {}

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            seen[tensor.data_ptr()] = tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss(logits, target)
        return sum(seen.values())

    assert saved(64) < 6 * saved(16)
