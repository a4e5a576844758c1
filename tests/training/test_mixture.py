"""Selection by a mixture of two Gaussians against the released code of DivideMix."""

import pytest
import torch
from torch import nn
from training_problems import assert_weights, descended, digits_accuracy, mlp, one_step, two_moons

from lossforge.errors import SpecError
from lossforge.training import make_method
from lossforge.training.methods.mixture import smaller_component


def released(losses):
    """Scale to [0, 1], fit scikit-learn's mixture, take the component with the smaller mean."""
    mixtures = pytest.importorskip("sklearn.mixture")
    scaled = ((losses - losses.min()) / (losses.max() - losses.min())).reshape(-1, 1).numpy()
    fitted = mixtures.GaussianMixture(
        n_components=2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=0
    ).fit(scaled)
    return torch.from_numpy(fitted.predict_proba(scaled)[:, fitted.means_.argmin()])


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("gap", [1.0, 2.0, 4.0])
def test_the_mixture_is_that_of_the_released_code(share, gap):
    chance = torch.Generator().manual_seed(0)
    wrong = torch.rand(500, generator=chance) < share
    losses = torch.randn(500, generator=chance).mul(0.3).exp() + gap * wrong
    ours, theirs = smaller_component(losses), released(losses)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8)


def test_equal_losses_are_all_clean():
    assert smaller_component(torch.full((5,), 0.3)).tolist() == [1.0] * 5


@pytest.mark.parametrize("broken", [torch.inf, torch.nan])
def test_losses_that_are_not_finite_are_not_clean(broken):
    losses = torch.tensor([0.1, 0.2, 0.15, 3.0, 3.1])
    found = smaller_component(torch.cat([losses, torch.tensor([broken])]))
    torch.testing.assert_close(found, torch.cat([smaller_component(losses), torch.zeros(1)]))
    assert smaller_component(torch.tensor([broken, broken])).tolist() == [0.0, 0.0]


def cross_entropies(model, inputs, given):
    with torch.no_grad():
        return torch.stack([
            -model(x[None]).log_softmax(1)[0, y]
            for x, y in zip(inputs, given.tolist(), strict=True)
        ])  # fmt: skip


def test_each_network_steps_along_what_the_other_finds_clean():
    inputs, true = two_moons(30)
    given = torch.where(torch.arange(30) % 4 == 0, 1 - true, true)
    models = mlp(2, 2), mlp(2, 2, seed=4)
    everything = torch.ones(30, dtype=torch.bool)

    def mean(rows):
        def objective(model):
            values = [
                -model(x[None]).log_softmax(1)[0, y]
                for x, y, kept in zip(inputs, given.tolist(), rows.tolist(), strict=True)
                if kept
            ]
            return torch.stack(values).mean()

        return objective

    warm = []
    for seed, model in zip((0, 4), models, strict=True):
        warm.append(mlp(2, 2, seed=seed))
        warm[-1].load_state_dict(descended(model, mean(everything)))
    clean = [released(cross_entropies(model, inputs, given)) > 0.5 for model in warm]
    assert not torch.equal(*clean)
    assert all(0 < int(rows.sum()) < 30 for rows in clean)
    expected = [descended(warm[i], mean(clean[1 - i])) for i in range(2)]
    state = one_step(
        make_method("mixture(warm_up=1)"), nn.CrossEntropyLoss(), models, inputs, given,
        epochs=2, schedule="constant",
    )  # fmt: skip
    assert torch.equal(state.memory["clean"], torch.stack(clean))
    assert_weights(state.model, expected[0])
    assert_weights(state.peers[0]["model"], expected[1])


def test_published_settings_are_the_defaults():
    assert str(make_method("mixture")) == "mixture(warm_up=10, threshold=0.5)"
    for text in ("mixture(warm_up=0)", "mixture(threshold=1)"):
        with pytest.raises(SpecError, match="must be"):
            make_method(text)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_selection_beats_plain_cross_entropy_under_symmetric_noise(seed):
    plain, selected = (
        digits_accuracy(method, "symmetric:0.5", seed=seed)
        for method in ("plain", "mixture(warm_up=5)")
    )
    assert selected > plain + 8
