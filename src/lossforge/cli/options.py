"""Options that several commands share: their names, how their values are read, and user errors."""

import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from .. import interrupts
from ..errors import check_integer
from . import library

if TYPE_CHECKING:
    from torch import Tensor

    from ..data.own import OwnData
    from ..noise import NoiseSpec

MOST_CLASSES = 25_000  # a transition matrix of more takes over 5 GB
# noise/spec.py has all forms; a test compares the two
FORMS = (
    "symmetric:RATE, pair:RATE, asymmetric:[MAP:]RATE (MAP is cifar10, cifar100, mnist or next), "
    "weights:W,W,..., or a .csv or .npy file with a transition matrix"
)
# CONTRIBUTING.md has the table of option names
RENAMED = {
    "bench": {"--losses": "--loss"},
    "frontier": {"--direction": "--noise", "--plot": "--out"},
    "tune": {"--plot": "--out"},
    "audit": {"--output": "--out"},
}

LossText = Annotated[
    str,
    typer.Argument(
        help="A loss or an expression, see `lossforge losses`, or your own my_losses.py:Name."
    ),
]
DataName = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="A data set that gives the number of classes and the class map of asymmetric noise, "
        "see `lossforge data list`.",
        show_default=False,
    ),
]
Classes = Annotated[
    int | None,
    typer.Option(
        help="Number of classes, where neither the noise nor --data determines it.",
        show_default=False,
    ),
]
Claim = Literal["monotone", "transfers", "global"]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Show = Annotated[
    bool, typer.Option("--open", help="Open the page in a browser, if stdout is a terminal.")
]
Device = Annotated[
    str | None,
    typer.Option(help="cpu or cuda; by default a GPU if there is one.", show_default=False),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of the data, instead of LOSSFORGE_DATA or the user's cache.",
        show_default=False,
    ),
]
MethodText = Annotated[
    str,
    typer.Option(
        "--method",
        help="Training method with its options, such as mixup(alpha=0.3); docs/methods.md has all.",
    ),
]
AS_GIVEN = "note: tested on labels as given, some of which may be wrong"
OWN_DATA = "or your own: a .csv, .tsv, .parquet or .npz file, a folder of class folders."
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        help="Column of the labels in your own table, instead of a guess.",
        show_default=False,
    ),
]
TrueLabel = Annotated[
    str | None,
    typer.Option(
        "--true", help="Column of true labels, which testing then uses.", show_default=False
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="A column of your own table to learn from, instead of all that look useful. May be "
        "repeated.",
        show_default=False,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight",
        help="Column with the weight of each sample in training; by default label_weight, which "
        "`lossforge clean` writes, if there is one. `none` for equal weights.",
        show_default=False,
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        help="Features of your own data: a .npy file with a row for each sample; of texts "
        "sentence-transformers:MODEL; of images timm:MODEL or patches:ATOMS.",
        show_default=False,
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Execute Python code that a file or store names, if its hash is the one noted there.",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Another setting, as key=value: epochs=20, lr=0.1, hold_out=0.1. May be repeated.",
        show_default=False,
    ),
]


def new_app(**settings: Any) -> typer.Typer:
    """Make a command or group that prints plain help and plain errors."""
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **settings
    )


class OwnDataCommand(TyperCommand):
    """A command that says how own data are named if they are typed as an argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        names = {name for one in self.params for name in one.opts}
        if ctx.resilient_parsing or not names >= {"--data", "--label"}:
            return super().parse_args(ctx, args)
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, [*args])  # click empties the list
        for word in rest:
            if library.data.own.is_path(word):
                ctx.fail(data_not_named(word, "an option"))
        if rest:
            ctx.allow_extra_args = False
            super().parse_args(ctx, args)  # raises click's own error
        return rest


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Print user errors as one line and exit with status 2; exit as a signal demands.

    Warnings of this package are printed as one line, too.
    """
    try:
        with interrupts.raising(), warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, warnings.showwarning)
            yield
    except typer.Exit:  # a RuntimeError of click, which carries the status of the command
        raise
    except KeyboardInterrupt as error:
        raise _interrupted(str(error)) from None
    except (OSError, TypeError, ValueError, ImportError, RuntimeError, MemoryError) as error:
        if interrupts.was_interrupted():  # inside an import, an interrupt becomes another error
            raise _interrupted() from None
        message = str(error)
        if isinstance(error, MemoryError) or "can't allocate memory" in message:
            message = "there is not enough memory for this"
        if isinstance(error, OSError) and error.filename and error.strerror:
            message = f"{error.filename}: {error.strerror}"
        typer.echo(f"error: {message}", err=True)
        raise typer.Exit(2) from None


def _interrupted(message: str = "") -> typer.Exit:
    """Print how to continue; return the exit, with the status of the signal."""
    message = message or "interrupted; the same command continues where this one stopped"
    typer.echo(message, err=True)
    interrupts.end()
    return typer.Exit(interrupts.status())


def _show_warning(usual: Callable[..., None], message: Any, *details: Any) -> None:
    filename = str(details[1])
    if Path(filename).is_relative_to(Path(__file__).parents[1]):
        typer.echo(f"note: {message}", err=True)
    else:
        usual(message, *details)


def with_new_names(command: Any, words: list[str]) -> list[str]:
    """Replace the old names of options, with a note on stderr for each.

    Args:
        command: The command, as typer made it.
        words: Its arguments as typed.
    """
    renamed = RENAMED.get(command.name, {})
    end = words.index("--") if "--" in words else len(words)
    found = []
    for word in words[:end]:
        old, equals, value = word.partition("=")
        if old in renamed:
            typer.echo(f"note: {old} is now {renamed[old]}", err=True)
        found.append(f"{renamed.get(old, old)}{equals}{value}")
    return found + words[end:]


def separate(texts: Iterable[str] | None) -> list[str]:
    """Split the values of a repeatable option at commas outside parentheses.

    >>> separate(["GCE(q=0.5, a=1), CE", "MAE"])
    ['GCE(q=0.5, a=1)', 'CE', 'MAE']
    """
    found = []
    for text in texts or ():
        words, depth = [""], 0
        for letter in text:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if letter == "," and not depth:
                words.append("")
            else:
                words[-1] += letter
        found += [word.strip() for word in words if word.strip()]
    return found


def read_data(text: str, **options: Any) -> "str | OwnData":
    """Return the name of a data set, or the user's own data as a run describes them.

    Args:
        text: From `--data`.
        options: By the names that `lossforge.data.own.load` has for them.
    """
    own = library.data.own
    if not own.is_name(text):
        if text == Path(text).name and not Path(text).exists() and "." not in text:
            library.data.registry.find(text)  # its error lists the names
        given = {name: value or None for name, value in options.items()}
        found: OwnData = own.describe(text, **given)
        if library.training.distributed.world()[0] == 0:
            for note in found.notes:
                typer.echo(f"note: {note}", err=True)
        return found
    refuse_own(options, f"{text} is a named data set")
    return text


def usual_noise(data: "str | OwnData") -> str:
    """Return the noise where none is named: labels of the user's own data stay as they are."""
    return "symmetric:0.4" if isinstance(data, str) else "given"


def data_not_named(path: str, expected: str) -> str:
    """Return the message for a path of own data that was typed without `--data`."""
    return f"{path} is data, not {expected}: write --data {shlex.quote(path)}"


def refuse_own(options: Mapping[str, Any], reason: str) -> None:
    """Raise if an option is given that is for the user's own data alone."""
    for name, value in options.items():
        if value:
            option = library.spec.OWN_OPTIONS[name]
            raise ValueError(f"{option} is for your own data, {reason}")


def typed_losses(texts: Iterable[str] | None) -> list[str]:
    """Read the losses of an option, and import the user's own code that they name."""
    found = separate(texts)
    library.catalog.admit(found)
    return found


def typed_loss(text: str) -> str:
    """Read a loss that the user typed, and import the user's own code that it names."""
    library.catalog.admit([text])
    return text


def pick_device(name: str | None) -> str:
    """Return the device that was named, or a GPU if there is one."""
    return name or ("cuda" if library.torch.cuda.is_available() else "cpu")


@dataclass(frozen=True)
class Noise:
    """A noise from the command line: a transition matrix, or the weights of one instance.

    Args:
        text: As the user wrote it.
        spec: As it was read.
        weights: (K, K) or (K,).
        data: The data set that completes it.
    """

    text: str
    spec: "NoiseSpec"
    weights: "Tensor"
    data: str | None = None

    @property
    def num_classes(self) -> int:
        return self.weights.shape[-1]

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of the classes, if the noise has them."""
        return self.spec.classes

    @property
    def options(self) -> str:
        """The options of a command that mean this noise."""
        more = ""
        if self.data is not None:
            more = f" --data {self.data}"
        elif self.spec.kind in ("symmetric", "pair") or self.spec.name == "next":
            more = f" --classes {self.num_classes}"
        return f"--noise {shlex.quote(self.text)}{more}"

    def class_name(self, k: int) -> str:
        """Return the name of a class, or its number."""
        return str(k) if self.classes is None else self.classes[k]


def read_noise(text: str, num_classes: int | None = None, data: str | None = None) -> Noise:
    """Read a noise, and check that every class keeps the largest share of its labels.

    Args:
        text: One of `FORMS`.
        num_classes: From `--classes`.
        data: From `--data`; gives the number of classes and the class map.
    """
    noise = complete_noise(text, num_classes, data)
    spec, count = noise.spec, noise.num_classes
    limit = spec.limit(count)
    if limit is not None and spec.rate is not None and spec.rate >= limit:
        rival = spec.rate / (count - 1) if spec.kind == "symmetric" else spec.rate
        raise ValueError(
            f"{text} with {count} classes has no unique largest weight: {1 - spec.rate:.4g} of the "
            f"labels of a noisy class are right and {rival:.4g} name one wrong class; the rate "
            f"must be below {limit:.4g}"
        )
    library.theory.read_noise(noise.weights, count)
    return noise


def complete_noise(text: str, num_classes: int | None = None, data: str | None = None) -> Noise:
    """Read a noise and complete it by the number of classes and the class map of a data set."""
    class_map = None
    if data is not None:
        num_classes, class_map = data_classes(data, num_classes)
    elif num_classes is not None:
        check_integer("--classes", num_classes, 2)
        if num_classes > MOST_CLASSES:
            raise ValueError(
                f"--classes must be at most {MOST_CLASSES:,}, got {num_classes:,}: the transition "
                f"matrix would take {8e-9 * num_classes**2:,.0f} GB"
            )
    spec = library.noise.NoiseSpec.parse(text)
    return Noise(text, spec, spec.transition(num_classes, class_map), data)


def data_classes(name: str, num_classes: int | None = None) -> tuple[int | None, str]:
    """Return the number of classes of a data set, if it has a fixed one, and its class map.

    Args:
        name: The data set.
        num_classes: What the user expects it to be.
    """
    source = library.data.registry.find(name)
    if num_classes is not None and source.num_classes not in (0, num_classes):
        raise ValueError(f"{name} has {source.num_classes} classes, got --classes {num_classes}")
    return source.num_classes or num_classes, source.class_map
