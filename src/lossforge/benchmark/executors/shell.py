"""One shell line per run, for whatever starts them: GNU parallel, a queue, another machine."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..spec import RunSpec
from .options import Options, Watch


def lines(store: Path, specs: Sequence[RunSpec], options: Options) -> Iterator[str]:
    """The commands that do the unfinished runs, in any order and at any time."""
    words = ["lossforge", "run", str(store.resolve())]
    end = [] if options.data_dir is None else ["--data-dir", str(options.data_dir.resolve())]
    for run in Watch(store, specs, options).unfinished:
        yield shlex.join([*words, run, *end])


def run_all(store: Path, specs: Sequence[RunSpec], options: Options) -> None:
    """Write the commands to standard output; they need nothing but the store."""
    for line in lines(store, specs, options):
        sys.stdout.write(line + "\n")
