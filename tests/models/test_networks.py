"""Architectures against the published tables, written out here; training; wrong arguments."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lossforge import models
from lossforge.models.resnet import Basic, Bottleneck

SHAPES = {
    "mlp": (64,),
    "cnn8": (3, 32, 32),
    "cnn8-narrow": (3, 32, 32),
    "resnet34": (3, 32, 32),
    "resnet50": (3, 224, 224),
}
FEATURES = {"mlp": 256, "cnn8": 256, "cnn8-narrow": 64, "resnet34": 512, "resnet50": 2048}


@pytest.fixture(autouse=True)
def _float32():
    torch.set_default_dtype(torch.float32)


def count(network):
    return sum(parameter.numel() for parameter in network.parameters())


def conv(before, after, kernel, bias=0):
    """Parameters of a convolution and the batch norm after it."""
    return before * after * kernel**2 + bias * after + 2 * after


def linear(before, after):
    return before * after + after


def resnet34(num_classes):
    """Table 1 of He et al. for 34 layers, with the 3x3 stem and no max-pool."""
    stem = conv(3, 64, 3)
    stage1 = 6 * conv(64, 64, 3)
    stage2 = conv(64, 128, 3) + 7 * conv(128, 128, 3) + conv(64, 128, 1)
    stage3 = conv(128, 256, 3) + 11 * conv(256, 256, 3) + conv(128, 256, 1)
    stage4 = conv(256, 512, 3) + 5 * conv(512, 512, 3) + conv(256, 512, 1)
    return stem + stage1 + stage2 + stage3 + stage4 + linear(512, num_classes)


def resnet50(num_classes):
    """Table 1 of He et al. for 50 layers."""

    def block(before, inside):
        return conv(before, inside, 1) + conv(inside, inside, 3) + conv(inside, 4 * inside, 1)

    stage1 = block(64, 64) + 2 * block(256, 64) + conv(64, 256, 1)
    stage2 = block(256, 128) + 3 * block(512, 128) + conv(256, 512, 1)
    stage3 = block(512, 256) + 5 * block(1024, 256) + conv(512, 1024, 1)
    stage4 = block(1024, 512) + 2 * block(2048, 512) + conv(1024, 2048, 1)
    return conv(3, 64, 7) + stage1 + stage2 + stage3 + stage4 + linear(2048, num_classes)


def cnn8(c1, c2, c3, hidden, num_classes, channels=3, pixels=16):
    """The protocol's layers; all but the head have a bias and a batch norm."""
    pairs = ((channels, c1), (c1, c2), (c2, c3))
    convolutions = sum(conv(a, b, 3, bias=1) + conv(b, b, 3, bias=1) for a, b in pairs)
    return convolutions + linear(c3 * pixels, hidden) + 2 * hidden + linear(hidden, num_classes)


# The totals of the ResNets are in torchvision's documentation (50) and in many repositories (34);
# of CNN8 only the layers are published, so its total is their sum.
@pytest.mark.parametrize(
    ("name", "num_classes", "published", "by_hand"),
    [
        ("resnet34", 10, 21_282_122, resnet34(10)),
        ("resnet34", 100, 21_328_292, resnet34(100)),
        ("resnet50", 1000, 25_557_032, resnet50(1000)),
        ("cnn8", 10, 1_639_794, cnn8(64, 128, 196, 256, 10)),
        ("cnn8-narrow", 10, 103_881, cnn8(16, 32, 49, 64, 10)),
        ("mlp", 10, 85_002, 64 * 256 + 256 + 256 * 256 + 256 + 256 * 10 + 10),
    ],
)
def test_parameters_are_counted_as_published(name, num_classes, published, by_hand):
    assert by_hand == published
    assert count(models.make(name, num_classes, inputs=SHAPES[name])) == published


def test_cnn8_takes_grey_images_of_other_sizes():
    network = models.make("cnn8", 10, inputs=(1, 8, 8))
    assert count(network) == cnn8(64, 128, 196, 256, 10, channels=1, pixels=1)
    assert network(torch.zeros(2, 1, 8, 8)).shape == (2, 10)


def torchvision_names():
    """The 320 keys of torchvision's ResNet-50: 53 convolutions, 53 batch norms, the head."""
    pairs = [("conv1", "bn1")]
    for stage, depth in enumerate((3, 4, 6, 3), start=1):
        for block in range(depth):
            place = f"layer{stage}.{block}."
            pairs += [(f"{place}conv{i}", f"{place}bn{i}") for i in (1, 2, 3)]
            if block == 0:
                pairs.append((f"{place}downsample.0", f"{place}downsample.1"))
    assert len(pairs) == 53
    of_norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    norms = [f"{norm}.{key}" for _, norm in pairs for key in of_norm]
    return [*(f"{conv}.weight" for conv, _ in pairs), *norms, "fc.weight", "fc.bias"]


def test_resnet50_has_torchvision_names_and_shapes():
    state = models.make("resnet50", 1000, inputs=(3, 224, 224)).state_dict()
    assert len(state) == 320
    assert set(state) == set(torchvision_names())
    shapes = {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.running_var": (64,),
        "layer1.0.conv1.weight": (64, 64, 1, 1),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer2.0.conv2.weight": (128, 128, 3, 3),
        "layer3.5.conv3.weight": (1024, 256, 1, 1),
        "layer4.0.downsample.1.bias": (2048,),
        "layer4.2.bn3.num_batches_tracked": (),
        "fc.weight": (1000, 2048),
        "fc.bias": (1000,),
    }
    assert {key: tuple(state[key].shape) for key in shapes} == shapes


def test_resnet50_blocks_are_in_torchvision_order_with_the_stride_on_the_3x3():
    network = models.make("resnet50", 10, inputs=(3, 224, 224))
    block = network.layer2[0]
    order = [name for name, _ in block.named_children()]
    assert order == ["conv1", "bn1", "conv2", "bn2", "conv3", "bn3", "downsample"]
    assert [block.conv1.stride, block.conv2.stride, block.conv3.stride] == [(1, 1), (2, 2), (1, 1)]
    assert block.downsample[0].stride == (2, 2)
    assert isinstance(network.maxpool, nn.MaxPool2d)


def test_resnet34_keeps_small_images_whole_until_the_second_stage():
    network = models.make("resnet34", 10, inputs=(3, 32, 32)).eval()
    sizes = []
    for stage in (network.layer1, network.layer2, network.layer3, network.layer4):
        stage.register_forward_hook(lambda _, __, out: sizes.append(tuple(out.shape[1:])))
    with torch.no_grad():
        network(torch.zeros(1, 3, 32, 32))
    assert sizes == [(64, 32, 32), (128, 16, 16), (256, 8, 8), (512, 4, 4)]


@pytest.mark.parametrize(
    "name",
    ["mlp", "cnn8", "cnn8-narrow", "resnet34", pytest.param("resnet50", marks=pytest.mark.slow)],
)
def test_a_training_step_reaches_every_parameter_and_lowers_the_loss_as_the_gradient_says(name):
    generator = torch.Generator().manual_seed(0)
    network = models.make(name, 5, inputs=SHAPES[name], generator=generator)
    # four samples: a batch norm over two leaves their signs and next to no gradient
    images = torch.randn(4, *SHAPES[name], generator=generator)
    target = torch.tensor([0, 4, 2, 0])
    features = network.features(images)
    assert features.shape == (4, FEATURES[name])
    loss = F.cross_entropy(network.fc(features), target)
    loss.backward()
    # a bias before a batch norm has a gradient of zero up to rounding: it must exist, and be finite
    for key, parameter in network.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
    steepness = sum(parameter.grad.square().sum() for parameter in network.parameters())
    step = 0.05 * loss.item() / steepness.item()  # to lower the loss by 5 %, to first order
    torch.optim.SGD(network.parameters(), lr=step).step()
    with torch.no_grad():
        after = F.cross_entropy(network(images), target)
    assert 0.94 < after / loss < 0.96


def small(kind):
    """A network of every kind that is quick to run on 32x32 images."""
    if isinstance(kind, str):
        return models.make(kind, 5, inputs=(3, 32, 32)).eval()
    return models.ResNet(kind, (1, 1, 1, 1), 5, inputs=(3, 32, 32), small=kind is Basic).eval()


KINDS = pytest.mark.parametrize("kind", ["mlp", "cnn8-narrow", Basic, Bottleneck])


@KINDS
def test_logits_are_the_head_of_the_features(kind):
    network, images = small(kind), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(network(images), network.fc(network.features(images)))


@KINDS
def test_bfloat16_and_channels_last_give_the_same_logits(kind):
    network, images = small(kind), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        expected = network(images)
        with torch.autocast("cpu", torch.bfloat16):
            half = network(images)
        network.to(memory_format=torch.channels_last)
        last = network(images.to(memory_format=torch.channels_last))
    assert half.dtype == torch.bfloat16
    scale = expected.abs().max()
    assert (last - expected).abs().max() < 1e-4 * scale
    assert (half - expected).abs().max() < 0.1 * scale


@pytest.mark.slow
@KINDS
def test_networks_trace_without_a_graph_break(kind):
    network, images = small(kind), torch.randn(2, 3, 32, 32)
    compiled = torch.compile(network, fullgraph=True, backend="eager")
    with torch.no_grad():
        assert torch.allclose(compiled(images), network(images), atol=1e-5)


@KINDS
def test_networks_copy_and_pickle(kind):
    network, images = small(kind), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        expected = network(images)
        for twin in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
            assert torch.equal(twin(images), expected)


def test_an_mlp_without_hidden_layers_is_linear():
    network = models.make("mlp", 3, inputs=(2, 4), hidden=())
    inputs = torch.randn(5, 2, 4)
    assert torch.equal(network.features(inputs), inputs.flatten(1))
    assert count(network) == 8 * 3 + 3


def test_names_are_found_in_any_case_and_unknown_ones_list_the_known():
    assert isinstance(models.make(" CNN8 ", 10, inputs=(3, 32, 32)), models.CNN8)
    with pytest.raises(ValueError, match=r"vgg.*mlp, cnn8, cnn8-narrow, resnet34, resnet50"):
        models.make("vgg", 10, inputs=(3, 32, 32))


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("cnn8", (64,), r"channels, height, width.*got \(64,\)"),
        ("cnn8", (3, 7, 32), "at least 8x8"),
        ("resnet34", (32, 32), "channels, height, width"),
        ("resnet34", (32, 32, 3), "channels, height, width"),
        ("resnet50", (3, 28, 28), "at least 32x32"),
        ("resnet50", (0, 224, 224), "inputs must be an integer of 1 or more, got 0"),
        ("mlp", (), "shape of one sample"),
        ("mlp", (-3,), "inputs must be an integer of 1 or more, got -3"),
    ],
)
def test_wrong_shapes_are_refused_at_construction(name, inputs, message):
    with pytest.raises(ValueError, match=message):
        models.make(name, 10, inputs=inputs)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_classes": 1}, ValueError, "num_classes must be an integer of 2 or more, got 1"),
        ({"num_classes": 2.0}, TypeError, "num_classes must be an integer of 2 or more, got 2.0"),
        ({"inputs": 64}, TypeError, "shape of one sample"),
        ({"num_classes": True}, TypeError, "num_classes must be an integer .* got True"),
        ({"inputs": (64.0,)}, TypeError, "inputs must be an integer"),
        ({"width": 3}, TypeError, "mlp has no option 'width'; it takes hidden"),
        ({"hidden": (0,)}, ValueError, "hidden must be an integer of 1 or more"),
        ({"generator": 7}, TypeError, "generator must be a torch.Generator"),
        ({"name": 7}, TypeError, "name must be a string"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    valid = {"name": "mlp", "num_classes": 10, "inputs": (64,)}
    with pytest.raises(error, match=message):
        models.make(**{**valid, **arguments})


@pytest.mark.parametrize("inputs", [(3, "8", 8), (3, 8.0, 8), (3, None, 8)])
def test_sides_that_are_no_integers_are_named_without_make_too(inputs):
    with pytest.raises(TypeError, match="inputs must be an integer of 1 or more, got"):
        models.CNN8(10, inputs=inputs)


def test_integers_of_numpy_are_integers():
    network = models.make("cnn8-narrow", np.int64(4), inputs=tuple(np.array([1, 8, 8])))
    assert network(torch.zeros(2, 1, 8, 8)).shape == (2, 4)
