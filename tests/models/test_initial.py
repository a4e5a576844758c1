"""Initial weights: from the generator and from nothing else, distributed as in the protocol."""

import math

import pytest
import torch
from torch import nn

from lossforge import models

SMALL = {
    "mlp": (3, 32, 32),
    "cnn8": (3, 32, 32),
    "cnn8-narrow": (3, 32, 32),
    "resnet34": (3, 32, 32),
    "resnet50": (3, 32, 32),
}


@pytest.fixture(autouse=True)
def _float32():
    torch.set_default_dtype(torch.float32)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", models.names())
def test_weights_depend_on_the_generator_alone(name):
    torch.manual_seed(1)
    first = models.make(name, 10, inputs=SMALL[name], generator=seeded(5)).state_dict()
    torch.manual_seed(2)
    second = models.make(name, 10, inputs=SMALL[name], generator=seeded(5)).state_dict()
    assert first.keys() == second.keys()
    assert [key for key in first if not torch.equal(first[key], second[key])] == []


@pytest.mark.parametrize("name", models.names())
def test_every_drawn_parameter_changes_with_the_seed(name):
    first = models.make(name, 10, inputs=SMALL[name], generator=seeded(5))
    second = models.make(name, 10, inputs=SMALL[name], generator=seeded(6))
    kinds = nn.Conv2d | nn.Linear
    drawn = {
        f"{place}.{key}"
        for place, layer in first.named_modules()
        if isinstance(layer, kinds)
        for key, _ in layer.named_parameters(recurse=False)
    }
    others = dict(second.named_parameters())
    changed = {
        key for key, value in first.named_parameters() if not torch.equal(value, others[key])
    }
    assert changed == drawn


@pytest.mark.parametrize("name", models.names())
def test_the_global_random_state_is_left_alone(name):
    before = torch.get_rng_state()
    models.make(name, 10, inputs=SMALL[name])
    models.make("mlp", 10, inputs=SMALL[name], generator=seeded(3))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_generator_goes_on_from_network_to_network():
    generator = seeded(0)
    first, second = (models.make("mlp", 2, inputs=(4,), generator=generator) for _ in range(2))
    assert not torch.equal(first.fc.weight, second.fc.weight)


def test_without_a_generator_networks_are_alike():
    first, second = (models.make("mlp", 2, inputs=(4,)) for _ in range(2))
    assert torch.equal(first.fc.weight, second.fc.weight)
    assert torch.equal(
        first.fc.weight, models.make("mlp", 2, inputs=(4,), generator=seeded(0)).fc.weight
    )


def test_networks_are_made_on_the_cpu_in_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    parameters = list(models.make("cnn8-narrow", 2, inputs=(3, 8, 8)).parameters())
    assert {parameter.device.type for parameter in parameters} == {"cpu"}
    assert {parameter.dtype for parameter in parameters} == {torch.float64}


def test_a_network_constructed_directly_follows_the_global_seed_and_the_same_rule():
    torch.manual_seed(7)
    first = models.CNN8(10, width=16)
    torch.manual_seed(7)
    second = models.CNN8(10, width=16)
    assert torch.equal(first.fc.weight, second.fc.weight)
    assert first.fc.weight.abs().max() > 0.9 * math.sqrt(6 / (64 + 10))


def is_uniform(values, bound):
    """All within the bound, and the spread of a uniform distribution on it (5 standard errors)."""
    values, n = values.double(), values.numel()
    spread = values.pow(2).mean() / (bound**2 / 3)
    return bool(values.abs().max() <= bound * (1 + 1e-6)) and abs(spread - 1) < 5 * 0.9 / n**0.5


@pytest.mark.parametrize("name", ["mlp", "cnn8", "cnn8-narrow", "resnet34"])
def test_the_protocol_starts_from_kaiming_and_xavier_uniform(name):
    network = models.make(name, 100, inputs=SMALL[name], generator=seeded(1))
    for place, layer in network.named_modules():
        if not isinstance(layer, nn.Conv2d | nn.Linear):
            continue
        fan_in, fan_out = layer.weight[0].numel(), layer.weight.shape[0]
        bound = math.sqrt(6 / (fan_in + (fan_out if isinstance(layer, nn.Linear) else 0)))
        assert is_uniform(layer.weight.detach(), bound), place
        if layer.bias is not None:
            assert is_uniform(layer.bias.detach(), fan_in**-0.5), place


def test_resnet50_starts_from_kaiming_normal_by_fan_out_as_torchvision():
    network = models.make("resnet50", 1000, inputs=(3, 224, 224), generator=seeded(1))
    for place, layer in network.named_modules():
        if isinstance(layer, nn.Conv2d):
            weight = layer.weight.detach().double()
            variance = 2 / (layer.out_channels * layer.kernel_size[0] ** 2)
            n = weight.numel()
            assert abs(weight.pow(2).mean() / variance - 1) < 5 * math.sqrt(2 / n), place
            assert weight.abs().max() > 3 * math.sqrt(variance), place
    assert is_uniform(network.fc.weight.detach(), 2048**-0.5)
    assert is_uniform(network.fc.bias.detach(), 2048**-0.5)


@pytest.mark.parametrize("name", ["cnn8-narrow", "resnet34", "resnet50"])
def test_batch_norms_start_as_the_identity(name):
    network = models.make(name, 10, inputs=SMALL[name])
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
    for norm in norms:
        for zero in (norm.bias, norm.running_mean, norm.num_batches_tracked):
            assert not zero.any()
        assert (norm.weight == 1).all()
        assert (norm.running_var == 1).all()


@pytest.mark.parametrize(("name", "last"), [("resnet34", "bn2"), ("resnet50", "bn3")])
def test_zero_init_residual_silences_the_last_norm_of_every_block_and_draws_the_same(name, last):
    plain, zeroed = (
        models.make(name, 10, inputs=SMALL[name], generator=seeded(2), zero_init_residual=zero)
        for zero in (False, True)
    )
    weights = dict(plain.named_parameters())
    differ = {k for k, value in zeroed.named_parameters() if not torch.equal(value, weights[k])}
    blocks = [
        (stage, block) for stage, depth in enumerate((3, 4, 6, 3), 1) for block in range(depth)
    ]
    assert differ == {f"layer{stage}.{block}.{last}.weight" for stage, block in blocks}
    assert not any(dict(zeroed.named_parameters())[key].any() for key in differ)
