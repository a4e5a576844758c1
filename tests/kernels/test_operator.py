"""The kernel as an operator: compiled graphs call it where any row can be evaluated."""

import pytest
import torch
from cases import named
from laws import assert_close, value_and_gradient

import lossforge
from lossforge import base, kernels
from lossforge.kernels.operator import rows, text_of

pytestmark = [
    pytest.mark.skipif(not kernels.is_on(), reason="the kernel is not built, or switched off"),
    # dynamo itself instantiates autograd.Function while it traces one
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

BASES = [(7.0, -8.0, 0.5), (7.0, -4.0, 0.5)]


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Graphs(list):
    """A backend of torch.compile that runs graphs as they are, and keeps their operators."""

    def __call__(self, graph, inputs):
        self.append([str(node.target) for node in graph.graph.nodes])
        return graph.forward

    @property
    def with_operator(self) -> list[bool]:
        return ["lossforge.rows.default" in graph for graph in self]


def compiled(loss, **options):
    graphs = Graphs()
    return torch.compile(loss, fullgraph=True, backend=graphs, **options), graphs


def batch(dtype=torch.float32, n=6, classes=7):
    return 3 * torch.randn(n, classes, dtype=dtype), torch.randint(classes, (n,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("derive", [False, True])
def test_torch_finds_the_operator_well_made(dtype, derive):
    logits, target = batch(dtype)
    form = text_of(lossforge.BEF().fused(7), dtype)
    torch.library.opcheck(
        rows,
        (logits.requires_grad_(derive), target, form, derive),
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )


@pytest.mark.parametrize(
    ("name", "covered"),
    [
        *(("BEF", True), ("BQF", True), ("TS-f2-tau3", True), ("BR-f1-tilted", True)),
        *(("nested-sum", False), ("JAL-CE", False), ("CE+LC", False)),
    ],
)
def test_smooth_losses_are_one_operator_of_a_graph(name, covered):
    (case,) = named(name)
    loss, (logits, target) = case.make(), batch()
    call, graphs = compiled(loss)
    call(logits, target)
    assert graphs.with_operator == [covered]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_value_and_gradient_are_those_of_torch_operations(dtype):
    logits, target = batch(dtype, n=16)
    logits[0, 1], logits[1, 2], target[2], logits[3] = -torch.inf, torch.nan, -100, 1e4
    logits[4, target[4]] = -torch.inf
    loss = lossforge.BEF(reduction="none")
    call, graphs = compiled(loss)
    found = value_and_gradient(lambda z: call(z, target), logits)
    with kernels.composed():
        expected = value_and_gradient(lambda z: loss(z, target), logits)
    assert graphs.with_operator == [True]
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, dtype)


@pytest.mark.parametrize(
    "losses",
    [
        (lossforge.BEF(), lossforge.BEF(lam=0.1, mu=0.9), lossforge.BEF(alpha=-2.0)),
        [lossforge.TargetSeparation(base.Quadratic(*three), tau=1.0) for three in BASES],
        [factor * lossforge.BinaryReduction(base.Quadratic(*BASES[0])) for factor in (0.9, 0.1)],
    ],
    ids=["BEF", "TS", "a sum"],
)
def test_each_loss_has_a_graph_of_its_own(losses):
    logits, target = batch()
    for loss in losses:
        call, graphs = compiled(loss)
        found = value_and_gradient(lambda z, call=call: call(z, target), logits)
        expected = value_and_gradient(lambda z, loss=loss: loss(z, target), logits)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, torch.float32)
        assert graphs.with_operator == [True]


def test_a_loss_that_is_replaced_is_found():
    logits, target = batch()
    model = torch.nn.Module()
    call, _ = compiled(lambda z: model.loss(z, target))
    for alpha in (-8.0, -2.0, -3.0):
        model.loss = lossforge.BEF(alpha=alpha)
        assert_close(call(logits), model.loss(logits, target), torch.float32)


@pytest.mark.parametrize(
    "wrong", ["half precision", "short labels", "other labels", "other layout"]
)
def test_nothing_but_a_batch_is_taken(wrong):
    logits, target = batch()
    form = text_of(lossforge.BEF().fused(7), logits.dtype)
    if wrong == "other layout":
        with pytest.raises(ValueError, match="compiled by this version"):
            rows(logits, target, "1 " + form.partition(" ")[2], False)
        return
    logits = logits.half() if wrong == "half precision" else logits
    target = {"short labels": target[1:], "other labels": target.int()}.get(wrong, target)
    with pytest.raises(TypeError, match="logits must be"):
        rows(logits, target, form, False)


def test_weights_smoothing_and_dense_targets_surround_the_operator():
    logits, target = torch.randn(2, 6, 4, 3), torch.randint(6, (2, 4, 3))
    target[0, 0] = 255
    loss = lossforge.BEF(weight=torch.rand(6), ignore_index=255, label_smoothing=0.1)
    call, graphs = compiled(loss)
    found = value_and_gradient(lambda z: call(z, target), logits)
    expected = value_and_gradient(lambda z: loss(z, target), logits)
    assert graphs.with_operator == [True]
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, torch.float32)


def test_without_derivatives_none_are_computed():
    logits, target = batch()
    values, gradient = rows(logits, target, text_of(lossforge.BEF().fused(7), logits.dtype), False)
    assert values.shape == (6,)
    assert gradient.numel() == 0
    call, _ = compiled(lossforge.BEF())
    with torch.no_grad():
        assert not call(logits.requires_grad_(), target).requires_grad
    assert call(logits, target).requires_grad


def test_a_label_out_of_range_is_an_error():
    logits, target = batch()
    target[3] = 7
    call, _ = compiled(lossforge.BEF())
    with pytest.raises(IndexError, match=r"labels must be in \[0, 7\)"):
        call(logits, target)


def test_an_unknown_number_of_classes_takes_torch_operations():
    loss = lossforge.BEF()
    call, graphs = compiled(loss, dynamic=True)
    for classes in (5, 9, 11):
        logits, target = batch(classes=classes)
        assert_close(call(logits, target), loss(logits, target), torch.float32)
    assert graphs.with_operator == [False]


def test_a_replaced_method_is_found():
    loss, (logits, target) = lossforge.BEF(), batch()
    call, graphs = compiled(loss)
    call(logits, target)
    loss.from_scores = lambda scores, target: 0 * scores.log_probs[:, 0] + 3
    assert call(logits, target) == 3
    assert graphs.with_operator == [True, False]


def test_transforms_inside_a_graph_see_torch_operations():
    loss, (logits, target) = lossforge.BEF(), batch()
    call, graphs = compiled(lambda z: torch.func.grad(lambda y: loss(y, target))(z))
    expected = value_and_gradient(lambda z: loss(z, target), logits)[1]
    assert_close(call(logits), expected, torch.float32)
    assert graphs.with_operator == [False]


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_program_needs_no_kernel(strict):
    loss, (logits, target) = lossforge.BEF(), batch()
    program = torch.export.export(loss, (logits, target), strict=strict)
    assert "lossforge" not in str(program.graph)
    assert_close(program.module()(logits, target), loss(logits, target), torch.float32)


def test_second_derivatives_of_a_graph_are_refused():
    logits, target = batch()
    call, _ = compiled(lossforge.BEF())
    value = call(logits.requires_grad_(), target)
    (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"without torch\.compile"):
        gradient.sum().backward()
