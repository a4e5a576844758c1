"""Images of labels, with pixels to ignore, as segmentation networks train."""

import pytest
import torch
from torch import nn

import lossforge

LOSSES = ["CE", "GCE", "BEF", "NCE+AGCE"]


def scene():
    """Squares on a ground, the border between them ignored as in Pascal VOC."""
    images, masks = 0.2 * torch.randn(4, 3, 16, 16), torch.zeros(4, 16, 16, dtype=torch.long)
    for i in range(4):
        row, column = torch.randint(2, 8, (2,)).tolist()
        masks[i, row - 1 : row + 7, column - 1 : column + 7] = 255
        masks[i, row : row + 6, column : column + 6] = 1 + i % 2
        images[i, i % 2, row : row + 6, column : column + 6] += 2.0
    return images, masks


@pytest.mark.parametrize("name", LOSSES)
def test_ignored_pixels_do_not_count(name):
    _, masks = scene()
    loss = lossforge.make(name, ignore_index=255)
    logits = torch.randn(4, 3, 16, 16, requires_grad=True)
    value = loss(logits, masks)
    value.backward()
    kept = masks != 255
    assert 0 < (~kept).sum() < kept.sum()
    rows = logits.detach().movedim(1, -1)[kept]
    assert torch.allclose(value, lossforge.make(name)(rows, masks[kept]))
    assert (logits.grad.movedim(1, -1)[~kept] == 0).all()
    assert (logits.grad.movedim(1, -1)[kept].abs().sum(1) > 0).all()
    assert loss.with_policy(reduction="none")(logits, masks).shape == masks.shape


@pytest.mark.parametrize("name", LOSSES)
def test_a_convolution_learns_the_masks(name):
    images, masks = scene()
    network = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 1))
    loss = lossforge.make(name, ignore_index=255)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        loss(network(images), masks).backward()
        optimizer.step()
    kept = masks != 255
    assert (network(images).argmax(1) == masks)[kept].double().mean() > 0.95
