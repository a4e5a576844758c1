"""What a search may see of data: noisy labels, and nothing else."""

from ..data import Dataset


def blind(dataset: Dataset) -> Dataset:
    """The data without true labels and without test splits.

    Args:
        dataset: With a part held out, whose given labels judge the search.
    """
    if dataset.validation is None:
        raise ValueError("dataset must have a validation part, got none: hold_out is 0")
    return dataset.without_truth()
