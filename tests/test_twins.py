"""The naive twins that `make bench-speed` times have the gradients of the losses they copy."""

import importlib.util
from pathlib import Path

import pytest
import torch
from laws import assert_close, value_and_gradient

import lossforge

FILE = Path(__file__).parents[1] / "benchmarks" / "twins.py"
TABLE = ["CE", "FL", "GCE", "SCE", "NCE", "NCE+RCE", "NCE+AUL", "NCE+AGCE"]
TABLE += ["ANL-CE", "ANL-FL", "JAL-CE", "JAL-FL", "FLeps+MAE", "CEeps+MAE", "CE+LC", "BEF", "BQF"]
OTHERS = [
    "BEF(alpha=-2, gamma=0.3, tau=2, lam=0.4, mu=0.6, br_beta=-5)",
    "BQF(alpha=3, beta=-5)",
    "2*NFL(gamma=1.5) + 3*AMSE(a=4, q=1.5) + 0.5*MAE(scale=3)",
    "AUL(a=2, q=0.5) + AGCE(a=0.1, q=0.4) + NNCE(eps=0.01) + RCE(A_clamp=0.01)",
]


@pytest.fixture(scope="module")
def twin():
    spec = importlib.util.spec_from_file_location("naive_twins", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.twin


@pytest.mark.parametrize("k", [2, 10, 300])
@pytest.mark.parametrize("text", [*TABLE, *OTHERS])
def test_gradients_agree(twin, text, k):
    loss = lossforge.parse(text)
    z, t = torch.randn(16, k), torch.randint(k, (16,))
    naive = twin(loss)
    _, expected = value_and_gradient(lambda x: loss(x, t), z)
    assert_close(value_and_gradient(lambda x: naive(x, t), z)[1], expected)


@pytest.mark.parametrize("text", ["JS", "FL(stop_gradient=True)", "CE + LDR"])
def test_a_loss_without_a_naive_formula_has_no_twin(twin, text):
    assert twin(lossforge.parse(text)) is None
