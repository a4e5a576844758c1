"""Features of test samples in the plane."""

from pathlib import Path
from typing import Any

from ..errors import extra
from .style import COLOURS, new_figure, style

MOST = 2000  # points: more take minutes and show no more


def embed(path: Path, most: int = MOST) -> tuple[Any, Any]:
    """Place stored features in the plane by t-SNE, the same for the same file.

    Args:
        path: A file `features.npz` with the arrays `features` and `labels`.
        most: How many samples to take, spread evenly over the file.

    Returns:
        Positions of shape (N, 2), and the N labels.

    Raises:
        ValueError: If the features are not finite, or all the same, as of a network that diverged.
    """
    numpy = extra("numpy", "bench")
    with numpy.load(path) as arrays:
        features, labels = arrays["features"], arrays["labels"]
    chosen = numpy.unique(numpy.linspace(0, len(features) - 1, min(most, len(features)), dtype=int))
    features = _scaled(features[chosen].reshape(len(chosen), -1))
    method = extra("sklearn.manifold", "bench").TSNE(
        init="pca" if features.shape[1] >= 2 else "random",
        perplexity=min(30.0, max(1.0, (len(chosen) - 1) / 3)),
        random_state=0,
    )
    # one thread: sums come out the same everywhere, and no core is fought for
    with extra("threadpoolctl", "bench").threadpool_limits(1):
        return method.fit_transform(features), labels[chosen]


def _scaled(features: Any) -> Any:
    """Features at most 1 away from the first, for t-SNE asks only how distances compare."""
    numpy = extra("numpy", "bench")
    features = features.astype("float64")  # in which squares of huge float32 are finite
    if not numpy.isfinite(features).all():
        raise ValueError("features must be finite, got NaN or infinity")
    features = features - features[0]
    largest = numpy.abs(features).max()
    if largest == 0:  # t-SNE would divide by their deviation, and crash the process
        raise ValueError("features must differ between samples, got the same for all")
    return (features / largest).astype("float32")


def scatter(positions: Any, labels: Any, *, title: str) -> Any:
    """Draw points in the colours of their classes.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    with style():
        figure, axis = new_figure(height=1.2)
        colours = [COLOURS[int(label) % len(COLOURS)] for label in labels]
        # thousands of points are lighter as pixels than as shapes
        axis.scatter(
            positions[:, 0],
            positions[:, 1],
            s=7,
            c=colours,
            alpha=0.8,
            linewidths=0,
            rasterized=len(labels) > 300,
        )
        axis.set_title(title)
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_aspect("equal", adjustable="datalim")
        axis.spines[:].set_visible(False)
    return figure
