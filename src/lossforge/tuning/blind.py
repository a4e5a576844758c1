"""What a search may see of data: noisy labels, and nothing else."""

from dataclasses import replace

from ..data import Dataset, Split


def blind(dataset: Dataset) -> Dataset:
    """The data without true labels and without test splits.

    Args:
        dataset: With a part held out, whose given labels judge the search.
    """
    if dataset.validation is None:
        raise ValueError("dataset must have a validation part, got none: hold_out is 0")
    return replace(
        dataset,
        train=_unknown(dataset.train),
        validation=_unknown(dataset.validation),
        tests={},
    )


def is_blind(dataset: Dataset) -> bool:
    """Whether there is nothing in the data that a search may not see."""
    parts = (dataset.train, dataset.validation)
    return not dataset.tests and all(part is None or part.true is None for part in parts)


def _unknown(split: Split) -> Split:
    return replace(split, true=None)
