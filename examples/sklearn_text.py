"""Raw text to a fitted pipeline of scikit-learn, with 40 % of the labels wrong.

    pip install "lossforge[skorch]" scikit-learn
    python examples/sklearn_text.py

The texts need no download: paragraphs of the documentation of SciPy's functions, which scikit-learn
brings along. The task is to tell the package that a paragraph is about. Functions of the test part
are others than those of the training part.
"""

import argparse
import importlib
import inspect
import random

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from lossforge.integrations.skorch import RobustClassifier

PACKAGES = ("interpolate", "linalg", "ndimage", "optimize", "signal", "stats")
LEAST_WORDS, MOST_PARAGRAPHS = 8, 4  # of a paragraph, and of a function


def paragraphs(package: str) -> list[list[str]]:
    """Return the prose of a package's documentation, function by function."""
    found = []
    module = importlib.import_module(f"scipy.{package}")
    for name in sorted(module.__all__):
        text = inspect.getdoc(getattr(module, name)) or ""
        prose = text.partition("\nReferences\n")[0].partition("\nExamples\n")[0]
        blocks = [" ".join(block.split()) for block in prose.split("\n\n")]
        kept = [block for block in blocks if len(block.split()) >= LEAST_WORDS]
        if kept:
            found.append(kept[:MOST_PARAGRAPHS])
    return found


def load() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return (text, package) of every paragraph for training and, of other functions, for tests."""
    train, test = [], []
    for package in PACKAGES:
        for number, function in enumerate(paragraphs(package)):
            part = test if number % 4 == 0 else train
            part += [(text, package) for text in function]
    return train, test


def with_noise(labels: list[str], rate: float, seed: int) -> list[str]:
    """Replace a share of the labels by others, drawn at random."""
    draw, noisy = random.Random(seed), list(labels)
    for row in draw.sample(range(len(labels)), round(rate * len(labels))):
        noisy[row] = draw.choice([name for name in PACKAGES if name != labels[row]])
    return noisy


def main() -> None:
    """Fit a pipeline with each loss, and print its accuracy on other functions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--rate", type=float, default=0.4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    train, test = load()
    texts, labels = zip(*train, strict=True)
    given = with_noise(list(labels), options.rate, options.seed)
    new, true = zip(*test, strict=True)
    print(f"{len(texts):,} paragraphs to learn from, {len(new):,} to test on")
    for loss in ("CE", "BEF"):
        model = make_pipeline(
            TfidfVectorizer(sublinear_tf=True, max_features=1500),
            RobustClassifier(loss, epochs=options.epochs, random_state=options.seed),
        )
        model.fit(texts, given)
        found = model.score(new, true)
        print(f"{loss:10}{100 * found:6.1f} % of the test paragraphs", flush=True)


if __name__ == "__main__":
    main()
