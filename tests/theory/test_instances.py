"""Instance-dependent noise: its exact label distributions, and for how many a loss is proved."""

import pytest
import torch

from lossforge import BEF, CE, MAE, data, noise, theory
from lossforge.theory.instances import ROUNDS
from lossforge.theory.proofs import Prover


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def some_data(n=600, num_classes=4):
    generator = seeded(7)
    features = torch.randn(n, 2, 3, generator=generator)
    return features, torch.randint(0, num_classes, (n,), generator=generator)


def test_rows_are_distributions_with_the_rate_beside_the_true_class():
    features, labels = some_data()
    found = noise.instance_rows(features, labels, 4, 0.3, std=0.05, generator=seeded())
    assert found.rows.dtype == torch.float64
    assert torch.equal(found.true, labels)
    assert bool((found.rows >= 0).all())
    torch.testing.assert_close(found.rows.sum(1), torch.ones(600))
    own = found.rows.gather(1, labels[:, None])
    assert (1 - own).mean().item() == pytest.approx(0.3, abs=4 * 0.05 / 600**0.5)


@pytest.mark.slow
def test_the_rates_and_confusions_are_those_of_the_labels():
    # the same instance many times: its labels follow its row
    features, labels = some_data(3)
    rows, drawn = [], []
    for seed in range(3000):
        rows.append(noise.instance_rows(features, labels, 4, 0.4, generator=seeded(seed)).rows)
        corrupted = noise.part_dependent(features, labels, 4, 0.4, generator=seeded(seed))
        drawn.append(torch.nn.functional.one_hot(corrupted.labels, 4).double())
    probs, seen = torch.stack(rows), torch.stack(drawn)
    # each draw minus its probability has mean 0 and a known variance
    error = (probs * (1 - probs)).sum(0).sqrt() / len(rows)
    assert bool(((seen - probs).mean(0).abs() <= 4.5 * error + 1e-12).all())
    # and each is explained by its own row far better than by the average one
    own = (seen * probs.clamp(min=1e-12).log()).sum()
    average = (seen * probs.mean(0).clamp(min=1e-12).log()).sum()
    assert own > average + 100


@pytest.mark.parametrize("seed", range(3))
def test_the_generator_ends_where_part_dependent_leaves_it(seed):
    features, labels = some_data()
    first, second = seeded(seed), seeded(seed)
    given = noise.part_dependent(features, labels, 4, 0.4, generator=first).labels
    found = noise.instance_rows(features, labels, 4, 0.4, generator=second)
    assert torch.equal(first.get_state(), second.get_state())
    assert bool((found.rows.gather(1, given[:, None]) > 0).all())


def test_large_features_leave_one_wrong_class():
    features, labels = some_data()
    rows = noise.instance_rows(200 * features, labels, 4, 0.4, generator=seeded()).rows
    wrong = rows.scatter(1, labels[:, None], 0.0)
    assert (wrong.amax(1) / wrong.sum(1)).median() > 0.999


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 1.5}, "rate must be"),
        ({"std": 0.0}, "std must be"),
        ({"features": torch.zeros(3, 2)}, "each of the 10 labels"),
        ({"features": torch.full((10, 2), torch.nan)}, "must be finite"),
    ],
)
def test_what_is_refused(change, message):
    settings = {
        "features": torch.zeros(10, 2),
        "labels": torch.arange(2).repeat(5),
        "num_classes": 2,
        "rate": 0.2,
    }
    with pytest.raises(ValueError, match=message):
        noise.instance_rows(**{**settings, **change}, generator=seeded())


def digits_noise(rate):
    train = data.load("digits").train
    inputs = train.inputs.flatten(1).double()
    return noise.instance_rows(inputs, train.true, 10, rate, generator=seeded())


@pytest.mark.slow
def test_the_certified_share_of_digits_falls_with_the_rate():
    shares = []
    for rate in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6):
        labels = digits_noise(rate)
        found = theory.certify_instances(BEF(), labels)
        assert len(found.proved) == len(labels.true)
        assert not bool((found.proved & found.dominated).any())
        shares.append(found.fraction)
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.8
    assert shares[-1] < shares[0] - 0.3


@pytest.mark.slow
def test_a_flat_loss_is_proved_wherever_the_true_label_leads():
    labels = digits_noise(0.5)
    found = theory.certify_instances(MAE(), labels)
    own = labels.rows.gather(1, labels.true[:, None])[:, 0]
    leads = own > labels.rows.scatter(1, labels.true[:, None], 0.0).amax(1)
    assert torch.equal(found.proved, leads)
    assert torch.equal(found.dominated, ~leads)
    assert theory.certify_instances(CE(), labels).fraction == 0


def test_certify_answers_for_instances_too():
    features, labels = some_data()
    found = noise.instance_rows(features, labels, 4, 0.3, generator=seeded())
    verdict = theory.certify(BEF(), found)
    assert isinstance(verdict, theory.InstanceVerdict)
    assert torch.equal(verdict.proved, theory.certify_instances(BEF(), found).proved)


STEEP = BEF(beta=-8, tau=1)  # the ratio tests stop at pair flips of .195, the proofs at .29


def flips(rates):
    rows = torch.zeros(len(rates), 10)
    rows[:, 0], rows[:, 1] = 1 - rates, rates
    return rows


@pytest.mark.slow
def test_instances_are_proved_by_the_proofs_of_certify():
    rows = flips(torch.linspace(0.05, 0.45, 41))
    found = theory.certify_instances(STEEP, rows)
    single = [theory.certify(STEEP, row, refute=False).status == "PROVED" for row in rows]
    assert found.proved.tolist() == single
    assert rows[found.proved, 1].max() > 0.25


@pytest.mark.slow
@pytest.mark.parametrize("claim", ["monotone", "global"])
def test_what_is_proved_of_many_is_proved_of_each(claim):
    """A row is proved through one that is no easier; the proof of itself succeeds as well."""
    generator = seeded(3)
    spread = torch.rand(60, 3, generator=generator) ** 3
    rate = 0.1 + 0.5 * torch.rand(60, 1, generator=generator)
    rows = torch.cat([1 - rate, rate * spread / spread.sum(1, keepdim=True)], 1)
    found = theory.certify_instances(STEEP, rows, claim=claim)
    statuses = [
        theory.certify(STEEP, row, claim=claim, refute=False).status == "PROVED" for row in rows
    ]
    proved, each = found.proved, torch.tensor(statuses)
    assert bool(proved.any())
    assert bool((each >= proved).all())
    assert int(proved.sum()) >= 0.9 * int(each.sum())


@pytest.mark.slow
def test_the_work_is_bounded_whatever_the_number_of_rows(monkeypatch):
    tried = []
    proves = Prover.proves
    monkeypatch.setattr(Prover, "proves", lambda *a, **k: tried.append(1) or proves(*a, **k))
    rate = 0.2 + 0.1 * torch.rand(3000, generator=seeded(4))
    found = theory.certify_instances(STEEP, flips(rate))
    assert 0 < len(tried) <= 40  # in one dimension a bisection
    assert bool(found.proved[rate < 0.28].all())
    assert sum(most for _, most, _ in ROUNDS) == 640  # as the docstring says
    assert "640" in theory.certify_instances.__doc__
