"""torch.compile with the default backend and no graph break gives the eager value and gradient."""

import shutil

import pytest
import torch
from cases import CASES, Case, named
from laws import assert_close, value_and_gradient

pytestmark = [
    pytest.mark.slow,
    # dynamo itself instantiates autograd.Function while it traces one
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.skipif(
        shutil.which("c++") is None and shutil.which("g++") is None,
        reason="torch.compile needs a C++ compiler, and none is installed",
    ),
]
INDEX = named(
    "CE", "BEF", "BQF", "TS-f2-tau3", "TS-series-tau1", "TS-log-tau0.5", "TS-two-bases",
    "BR-f1-tilted", "BR-log", "BR-power", "nested-sum",
    "ANL-CE", "JAL-CE", "NCE+AGCE", "CEeps+MAE", "CE+LC", "LDR", "JS",
)  # fmt: skip
SOFT = named("CE", "TS-f1-tau3", "BEF")
TRACED = [case for case in CASES if case not in INDEX]


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def assert_compiled_equals_eager(loss, logits, target, dtype, backend="inductor") -> None:
    compiled = torch.compile(loss, fullgraph=True, dynamic=False, backend=backend)
    expected = value_and_gradient(lambda z: loss(z, target), logits)
    actual = value_and_gradient(lambda z: compiled(z, target), logits)
    assert actual[0].dtype == expected[0].dtype == dtype
    assert_close(actual[0], expected[0], dtype)
    assert_close(actual[1], expected[1], dtype)


@pytest.mark.parametrize("case", INDEX, ids=lambda case: case.id)
def test_index_targets_with_ignored_rows(case: Case) -> None:
    z, t = 3 * torch.randn(16, 10, dtype=torch.float32), torch.randint(10, (16,))
    t[::5], z[::5, 0], z[0, 1] = -100, -torch.inf, torch.nan
    assert_compiled_equals_eager(case.make(), z, t, torch.float32)


@pytest.mark.parametrize("case", TRACED, ids=lambda case: case.id)
def test_every_other_loss_is_traced_without_a_graph_break(case: Case) -> None:
    z, t = 3 * torch.randn(8, 10, dtype=torch.float32), torch.randint(10, (8,))
    t[::5], z[::5, 0], z[0, 1] = -100, -torch.inf, torch.nan
    assert_compiled_equals_eager(case.make(10), z, t, torch.float32, backend="aot_eager")


@pytest.mark.parametrize("case", SOFT, ids=lambda case: case.id)
def test_probability_targets(case: Case) -> None:
    z = 3 * torch.randn(16, 10, dtype=torch.float32)
    q = torch.softmax(torch.randn(16, 10, dtype=torch.float32), 1)
    assert_compiled_equals_eager(case.make(), z, q, torch.float32)


@pytest.mark.parametrize("case", named("BEF"), ids=lambda case: case.id)
def test_dense_weighted_smoothed(case: Case) -> None:
    z, t = torch.randn(2, 6, 4, 3), torch.randint(6, (2, 4, 3))
    t[0, 0] = 255
    loss = case.make().with_policy(weight=torch.rand(6), ignore_index=255, label_smoothing=0.1)
    assert_compiled_equals_eager(loss, z, t, torch.float64)


@pytest.mark.parametrize("case", named("BEF", "BR-f1-tilted"), ids=lambda case: case.id)
def test_smoothed(case: Case) -> None:
    z, t = torch.randn(16, 10), torch.randint(10, (16,))
    loss = case.make().with_policy(label_smoothing=0.1)
    assert_compiled_equals_eager(loss, z, t, torch.float64, backend="aot_eager")


@pytest.mark.parametrize("case", named("BEF"), ids=lambda case: case.id)
def test_half_precision(case: Case) -> None:
    z, t = torch.randn(16, 10, dtype=torch.bfloat16), torch.randint(10, (16,))
    assert_compiled_equals_eager(case.make(), z, t, torch.bfloat16)
