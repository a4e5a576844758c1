"""A scikit-learn classifier that trains a network with any loss, through skorch.

Importing this needs scikit-learn; `lossforge.integrations.skorch.RobustClassifier` says so where it
is missing.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..catalog import parse
from ..errors import check_integer, check_number, extra
from ..loss import Loss

np = extra("numpy", "skorch")
base = extra("sklearn.base", "skorch")
multiclass = extra("sklearn.utils.multiclass", "skorch")
validation = extra("sklearn.utils.validation", "skorch")

STEPS = 8  # an epoch at least, where there are few samples
LEAST_BATCH, MOST_BATCH = 16, 256


class RobustClassifier(base.ClassifierMixin, base.BaseEstimator):  # type: ignore[name-defined, misc]
    """A network trained with a robust loss, as a classifier of scikit-learn.

    Labels may be strings or numbers, and features dense or sparse, such as those of
    `TfidfVectorizer`; it takes part in pipelines, cross-validation and searches.

    ::

        model = make_pipeline(TfidfVectorizer(), RobustClassifier("BEF", random_state=0))
        model.fit(texts, labels).predict(["where is my refund?"])
        GridSearchCV(model, {"robustclassifier__loss": ["CE", "BEF", "GCE(q=0.4)"]})

    Args:
        loss: A loss as text, see `lossforge.parse`; a `Loss`, or a function that makes one.
        hidden: The widths of the hidden layers; none makes a linear model.
        module: Makes another network from the numbers of features and classes; it takes float32
            rows and returns logits.
        epochs: Passes over the data.
        batch_size: Samples of a step; "auto" is a power of two up to 256 that leaves eight steps an
            epoch.
        lr: Learning rate of Adam.
        weight_decay: Of AdamW.
        device: Where to train and predict.
        random_state: Determines initial weights and batch order: a number, a numpy generator, or
            None for other ones each time.
        verbose: Whether skorch prints a line an epoch.

    Attributes:
        classes_: The labels, sorted.
        n_features_in_: The number of features.
        net_: The fitted `skorch.NeuralNetClassifier`; its labels are positions in `classes_`.
    """

    def __init__(
        self,
        loss: str | Loss | Callable[[], Loss] = "BEF",
        *,
        hidden: Sequence[int] = (256,),
        module: Callable[[int, int], nn.Module] | None = None,
        epochs: int = 50,
        batch_size: int | str = "auto",
        lr: float = 2e-3,
        weight_decay: float = 0.0,
        device: str = "cpu",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.hidden = hidden
        self.module = module
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RobustClassifier":
        """Train a network from new weights.

        Args:
            X: (N, F) features, an array, a data frame of numbers, or a sparse matrix.
            y: (N,) labels.
            sample_weight: (N,) how much each sample counts, 0 or more. The mean of a batch is the
                sum of weight times loss over the sum of weights; samples of weight 0 are left out.
        """
        self._check_parameters()
        X, y = validation.validate_data(self, X, y, accept_sparse="csr", dtype=np.float32)
        multiclass.check_classification_targets(y)
        weights = validation._check_sample_weight(
            sample_weight, X, dtype=np.float32, ensure_non_negative=True
        )
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have two classes or more, got one class: {self.classes_[0]}")
        counted = weights.nonzero()[0]
        rows = Rows(X[counted], labels[counted], weights[counted])
        seed = extra("sklearn.utils", "skorch").check_random_state(self.random_state)
        with torch.random.fork_rng():
            torch.manual_seed(int(seed.randint(2**31)))
            self.net_ = self._net(len(counted)).fit(rows, None)
        return self

    def _check_parameters(self) -> None:
        check_integer("epochs", self.epochs, 1)
        if self.batch_size != "auto":
            check_integer("batch_size", self.batch_size, 1)
        check_number("lr", self.lr, "positive", lambda v: v > 0)
        check_number("weight_decay", self.weight_decay, "0 or more", lambda v: v >= 0)
        for width in self.hidden:
            check_integer("a width of hidden", width, 1)

    def _net(self, count: int) -> Any:
        """Make the network and its training for a number of samples."""
        sizes = self.n_features_in_, len(self.classes_)
        network = Perceptron(*sizes, self.hidden) if self.module is None else self.module(*sizes)
        size = self.batch_size
        if size == "auto":
            size = 2 ** math.floor(math.log2(max(1, count / STEPS)))
            size = min(MOST_BATCH, max(LEAST_BATCH, size))
        return extra("skorch", "skorch").NeuralNetClassifier(
            network,
            criterion=WeightedMean(_made(self.loss)),
            optimizer=torch.optim.AdamW,
            optimizer__weight_decay=self.weight_decay,
            lr=self.lr,
            max_epochs=self.epochs,
            batch_size=size,
            iterator_train__shuffle=True,
            iterator_train__collate_fn=_as_it_is,
            iterator_valid__collate_fn=_as_it_is,
            train_split=None,
            predict_nonlinearity=partial(torch.softmax, dim=1, dtype=torch.float64),
            classes=list(range(len(self.classes_))),
            device=self.device,
            verbose=self.verbose,
        )

    def predict_proba(self, X: Any) -> Any:
        """Return (N, K) class probabilities, in the order of `classes_`."""
        validation.check_is_fitted(self)
        X = validation.validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=False)
        return self.net_.predict_proba(Rows(X))

    def predict(self, X: Any) -> Any:
        """Return the most probable label of each sample (N,)."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]


def _made(loss: str | Loss | Callable[[], Loss]) -> Loss:
    if isinstance(loss, str):
        return parse(loss)
    found = loss if isinstance(loss, Loss) or not callable(loss) else loss()
    if not isinstance(found, Loss):
        raise TypeError(f"loss must be a text, a Loss or a function that makes one, got {loss!r}")
    return found


class Rows(torch.utils.data.Dataset[Any]):
    """Dense or sparse rows with labels and weights, read a whole batch at a time.

    Args:
        X: (N, F), an array or a CSR matrix.
        labels: (N,) positions of classes; None to predict.
        weights: (N,) how much each row counts.
    """

    def __init__(self, X: Any, labels: Any = None, weights: Any = None) -> None:
        self._X = X
        count = X.shape[0]
        self._labels = torch.zeros(count, dtype=torch.int64)
        self._weights = torch.ones(count)
        if labels is not None:
            self._labels = torch.as_tensor(labels, dtype=torch.int64)
            self._weights = torch.as_tensor(weights)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, row: int) -> Any:
        return self.__getitems__([row])

    def __getitems__(self, rows: list[int]) -> Any:
        """Return a batch: inputs, and labels with weights."""
        part = self._X[rows]
        dense = part if isinstance(part, np.ndarray) else part.toarray()
        return torch.from_numpy(dense), (self._labels[rows], self._weights[rows])


def _as_it_is(batch: Any) -> Any:
    """Return a batch that a data set has put together already."""
    return batch


class WeightedMean(nn.Module):
    """The mean of a loss over a batch of weighted samples.

    Args:
        loss: Any loss; it is copied.
    """

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss.with_policy(reduction="none")

    def forward(self, logits: Tensor, target: tuple[Tensor, Tensor]) -> Tensor:
        """Return the sum of weight times value over the sum of weights, those of classes included.

        Args:
            logits: (N, K).
            target: Labels (N,), and weights of the samples (N,).
        """
        labels, weights = target
        values: Tensor = self.loss(logits, labels)
        divisor = weights if self.loss.weight is None else weights * self.loss.weight[labels]
        return (weights * values).sum() / divisor.sum()


class Perceptron(nn.Sequential):
    """Linear layers with rectifiers between them, which predict in double precision on a CPU.

    In single precision the last digits of a row's logits depend on the rows beside it, because a
    CPU divides a product of matrices by its size; scikit-learn expects that they do not.

    Args:
        features: The number of inputs.
        classes: The number of logits.
        hidden: The widths of the layers between.
    """

    def __init__(self, features: int, classes: int, hidden: Sequence[int]) -> None:
        layers: list[nn.Module] = []
        for width in hidden:
            layers += [nn.Linear(features, width), nn.ReLU()]
            features = width
        super().__init__(*layers, nn.Linear(features, classes))

    def forward(self, rows: Tensor) -> Tensor:
        """Return logits (N, K), in float64 when predicting on a CPU."""
        exact = not self.training and rows.device.type == "cpu"
        values = rows.double() if exact else rows
        for layer in self:
            if isinstance(layer, nn.Linear):
                dtype = values.dtype
                values = F.linear(values, layer.weight.to(dtype), layer.bias.to(dtype))
            else:
                values = layer(values)
        return values
