"""The mean over all processes, for data-parallel training in Lightning, timm or plain torch."""

import torch
from torch import Tensor, distributed, nn

from ..loss import Loss


class GlobalMean(nn.Module):
    """The mean loss over the labels of all processes.

    `DistributedDataParallel`, and with it Lightning's ``strategy="ddp"``, averages gradients over
    processes. Where every process has as many labels, the mean of their means is the mean over all
    of them. Where `ignore_index` leaves a process fewer labels, or class weights give it less
    weight, its labels count for more than others'. This counts over all processes, so that
    gradients are those of one process with the whole batch.

    Every process must call it equally often: it communicates. Values differ between processes;
    their mean, Lightning's ``self.log(..., sync_dist=True)``, is the mean loss. Without processes
    it is the mean loss itself.

    Args:
        loss: Any loss; its reduction is not used.

    Example:
        >>> import torch, lossforge
        >>> logits, target = torch.zeros(3, 4), torch.tensor([2, 0, -100])
        >>> print(f"{GlobalMean(lossforge.CE())(logits, target):.4f}")
        1.3863
    """

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss.with_policy(reduction="none")

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the sum of losses of this process over the mean weight of a process.

        Args:
            input: Logits, as every loss takes them.
            target: Class indices or class probabilities.
        """
        values: Tensor = self.loss(input, target)
        # a sum over many labels leaves the range of half precision
        wide = torch.promote_types(values.dtype, torch.float32)
        total, kept = values.sum(dtype=wide), self._kept(input, target, wide)
        if distributed.is_available() and distributed.is_initialized():
            distributed.all_reduce(kept)
            kept = kept / distributed.get_world_size()
        return total / kept

    def _kept(self, input: Tensor, target: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the weight that a mean divides by, as in cross entropy."""
        if target.is_floating_point():
            rows = input.numel() // input.shape[0 if input.dim() == 1 else 1]
            return torch.tensor(rows, device=input.device, dtype=dtype)
        labels = target.long()  # an unsigned label compares with -100 as 156
        keep = labels != self.loss.ignore_index
        if self.loss.weight is None:
            return keep.sum(dtype=dtype)
        weights = self.loss.weight.to(dtype)[torch.where(keep, labels, 0)]
        return torch.where(keep, weights, 0).sum()
