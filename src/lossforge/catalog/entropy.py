"""Cross entropy."""

from typing import Unpack

from ..base import Log
from ..constructions import TargetLoss
from ..loss import Policy
from .named import Named


class CE(Named, TargetLoss):
    r"""Cross entropy, :math:`-\log p_y`: equal to `torch.nn.CrossEntropyLoss` in every respect."""

    def __init__(self, **policy: Unpack[Policy]) -> None:
        super().__init__(Log(), **policy)
        self.settings = {}
