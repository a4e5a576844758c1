"""Texts and measurements as float32 features."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import extra
from .embeddings import embed_texts

TFIDF_SIZE = 512


def featurise(
    train: Sequence[str],
    *others: Sequence[str],
    features: str = "tfidf",
    name: str = "the training texts",
) -> list[Tensor]:
    """Make one row of float32 features for each text, fitted to the first texts alone.

    - "tfidf" or "tfidf:SIZE": weights of single words (log counts, inverse document frequency,
      length 1), projected on the SIZE leading singular vectors (512, or fewer if the texts have
      no more). Needs the extra "bench".
    - "embed:MODEL": sentence embeddings of a model on disk or on the Hugging Face hub. Needs the
      extra "embed".

    Rows are scaled to the length sqrt(size), so that a feature is of the order of 1, which networks
    learn from fastest; a text without a known word is a row of zeros.

    Args:
        train: The texts that words and their weights are learnt from.
        others: More texts, such as a test part.
        features: One of the above.
        name: What an error calls the training texts.
    """
    kind, colon, detail = features.partition(":")
    if kind == "tfidf" and (not colon or (detail.isdecimal() and int(detail) > 0)):
        words = Words.fit(train, int(detail) if colon else TFIDF_SIZE, name=name)
        rows = [words(texts) for texts in (train, *others)]
    elif kind == "embed" and detail:
        rows = [embed_texts(detail, texts) for texts in (train, *others)]
    else:
        raise ValueError(
            f"features must be 'tfidf', 'tfidf:SIZE' or 'embed:MODEL', got {features!r}"
        )
    return [scale(one) for one in rows]


def standardise(train: Tensor, *others: Tensor) -> list[Tensor]:
    """Scale columns to mean 0 and variance 1 in the first table, the others alike; float32.

    A column that is constant in the first table only has its mean taken off.
    """
    mean, deviation = moments(train)
    return [((table - mean) / deviation).to(torch.float32) for table in (train, *others)]


def moments(train: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the deviation of each column; of a constant one its value and 1."""
    mean, deviation = train.mean(0), train.std(0, correction=0)
    # Not `deviation == 0`: rounding in the mean makes the deviation of equal values about 1e-17.
    constant = (train == train[:1]).all(0)
    return mean.where(~constant, train[0]), deviation.where(~constant, 1)


@dataclass(frozen=True, eq=False)
class Words:
    """Weights of single words, projected on the leading singular vectors of training texts.

    Args:
        vocabulary: The words.
        idf: (V,) their inverse document frequencies.
        components: (D, V) the singular vectors.
    """

    vocabulary: tuple[str, ...]
    idf: Tensor
    components: Tensor

    @classmethod
    def fit(
        cls, train: Sequence[str], size: int = TFIDF_SIZE, *, name: str = "the training texts"
    ) -> "Words":
        """Learn words and vectors from texts; `name` is what an error calls them."""
        text = extra("sklearn.feature_extraction.text", "bench")
        decomposition = extra("sklearn.decomposition", "bench")
        # On held-out intents, pairs of words besides gained nothing and made projection slower.
        words = text.TfidfVectorizer(sublinear_tf=True)
        few = f"{name} must have two different words of two letters or more, got"
        try:
            fitted = words.fit_transform(train)
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            raise ValueError(f"{few} none") from error
        if fitted.shape[1] < 2:
            raise ValueError(f"{few} one")
        project = decomposition.TruncatedSVD(min(size, *fitted.shape), random_state=0)
        with _one_blas_thread():
            project.fit(fitted)
        return cls(
            tuple(words.get_feature_names_out().tolist()),
            torch.from_numpy(words.idf_.copy()),
            torch.from_numpy(project.components_.copy()),
        )

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """Return one row of features for each text, before scaling."""
        text = extra("sklearn.feature_extraction.text", "bench")
        words = text.TfidfVectorizer(sublinear_tf=True, vocabulary=list(self.vocabulary))
        words.idf_ = self.idf.numpy()
        with _one_blas_thread():
            return torch.from_numpy(words.transform(texts) @ self.components.numpy().T)


def _one_blas_thread() -> Any:
    """With one thread the last digits do not depend on how many the machine has."""
    return extra("threadpoolctl", "bench").threadpool_limits(1, user_api="blas")


def scale(rows: Tensor) -> Tensor:
    """Scale rows to the length sqrt(size); a row of zeros stays one."""
    rows = rows.to(torch.float64)
    length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    length[length == 0] = 1
    return torch.div(math.sqrt(rows.shape[1]) * rows, length).to(torch.float32)
