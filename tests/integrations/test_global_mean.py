"""Two processes have the gradient of one, whatever labels each of them lacks."""

import processes
import pytest
import torch

from lossforge.integrations.distributed import GlobalMean


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ddp")
    torch.multiprocessing.spawn(processes.work, (2, str(folder)), nprocs=2)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.slow
@pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this torch has no distributed package"
)
@pytest.mark.parametrize("name", processes.LOSSES)
def test_gradient_and_mean_value_are_those_of_one_process(results, name):
    loss = processes.LOSSES[name].with_policy(reduction="mean")
    value, gradient = processes.step(name, slice(None), loss, lambda model: model)
    first, second = (result[name] for result in results)
    assert (first[0] + second[0]) / 2 == pytest.approx(value, rel=1e-12)
    for other in (first[1], second[1]):
        torch.testing.assert_close(other, gradient, rtol=1e-10, atol=1e-14)
    local = results[0]["local " + name][1]
    # a mean of means is another gradient, unless every place counts
    same = all(torch.allclose(a, b) for a, b in zip(local, gradient, strict=True))
    assert same == (name == "soft")


@pytest.mark.parametrize("name", processes.LOSSES)
def test_without_processes_it_is_the_mean(name):
    inputs, labels = processes.problem(name)
    logits = inputs[:, : processes.CLASSES]
    loss = processes.LOSSES[name].with_policy(reduction="mean")
    found = GlobalMean(processes.LOSSES[name])(logits, labels)
    assert torch.allclose(found, loss(logits, labels))


def test_labels_of_one_byte_are_all_counted():
    logits, labels = torch.randn(2, 200), torch.tensor([156, 3], dtype=torch.uint8)  # -100 is 156
    loss = processes.LOSSES["plain"]
    assert torch.allclose(GlobalMean(loss)(logits, labels), loss(logits, labels))


def test_unbatched_and_half_precision():
    criterion = GlobalMean(processes.LOSSES["plain"])
    logits, target = torch.randn(4), torch.tensor(2)
    assert torch.allclose(criterion(logits, target), processes.LOSSES["plain"](logits, target))
    soft = torch.full((4,), 0.25)
    assert torch.allclose(criterion(logits, soft), processes.LOSSES["plain"](logits, soft))
    many = torch.zeros(60_000, 4, dtype=torch.float16)
    labels = torch.zeros(60_000, dtype=torch.long)
    loss = GlobalMean(processes.LOSSES["sum"])
    assert loss(many, labels).item() == pytest.approx(1.3862944, rel=1e-3)
    weighted = GlobalMean(processes.LOSSES["weight"]).to(torch.bfloat16)
    found = weighted(many.to(torch.bfloat16), labels)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(1.3862944, rel=1e-2)
