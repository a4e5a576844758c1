"""What a test case is: a loss, its naive formula and what it claims."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import naive
from laws import LAWS
from torch import Tensor

import lossforge

Formula = TypeVar("Formula", bound=Callable[..., Tensor])


@dataclass(frozen=True)
class Separated:
    """coefficient * TS(base), in naive formulas."""

    base: naive.Base
    tau: float | None = None
    a: float | None = None
    nontarget: naive.Base | None = None
    coefficient: float = 1.0

    def _a(self, z: Tensor) -> float:
        return max((self.tau or 0.0) / (len(z) - 1), self.a or 0.0)

    def value(self, z: Tensor, t: int) -> Tensor:
        u = naive.softmax(z)
        return self.coefficient * naive.target_separation(
            self.base, u, t, self._a(z), self.nontarget
        )

    def of_probs(self, u: Tensor, t: int, xi: float | None = None) -> Tensor:
        a = self._a(u)
        return self.coefficient * naive.target_separation(self.base, u, t, a, self.nontarget)

    def gradient(self, z: Tensor, t: int) -> Tensor:
        u = naive.softmax(z)
        return self.coefficient * naive.target_separation_gradient(
            self.base, u, t, self._a(z), self.nontarget
        )


@dataclass(frozen=True)
class Reduced:
    """coefficient * BR(base), in naive formulas."""

    base: naive.Base
    coefficient: float = 1.0

    def value(self, z: Tensor, t: int) -> Tensor:
        return self.coefficient * naive.binary_reduction(self.base, naive.softmax(z), t)

    def of_probs(self, u: Tensor, t: int, xi: float | None = None) -> Tensor:
        return self.coefficient * naive.binary_reduction(self.base, u, t, xi)

    def of_margins(self, z: Tensor, t: int) -> Tensor:
        return self.coefficient * naive.binary_reduction_of_logits(self.base, z, t)

    def gradient(self, z: Tensor, t: int) -> Tensor:
        return self.coefficient * naive.binary_reduction_gradient(self.base, z, t)


@dataclass(frozen=True)
class Cosine:
    """coefficient * the bounded cosine, in naive formulas."""

    coefficient: float = 1.0
    rivals: float = math.inf

    def value(self, z: Tensor, t: int) -> Tensor:
        return self.coefficient * naive.bounded_cosine(z, t, self.rivals)

    def of_probs(self, u: Tensor, t: int, xi: float | None = None) -> Tensor:
        return self.value(u.log(), t)

    def gradient(self, z: Tensor, t: int) -> Tensor:
        return self.coefficient * naive.bounded_cosine_gradient(z, t, self.rivals)


@dataclass(frozen=True)
class Either:
    """One term where a sample has up to `most` other classes, another where it has more."""

    few: Reduced | Cosine
    many: Reduced | Cosine
    most: int

    def _of(self, z: Tensor) -> Reduced | Cosine:
        return self.few if len(z) - 1 <= self.most else self.many

    def value(self, z: Tensor, t: int) -> Tensor:
        return self._of(z).value(z, t)

    def of_probs(self, u: Tensor, t: int, xi: float | None = None) -> Tensor:
        return self._of(u).of_probs(u, t, xi)

    def gradient(self, z: Tensor, t: int) -> Tensor:
        return self._of(z).gradient(z, t)


@dataclass(frozen=True)
class Published:
    """A loss by a formula of the probabilities or of the logits of one sample."""

    probs: Callable[[Tensor, int], Tensor] | None = None
    logits: Callable[[Tensor, int], Tensor] | None = None
    closed: Callable[[Tensor, int], Tensor] | None = None

    def value(self, z: Tensor, t: int) -> Tensor:
        return self.logits(z, t) if self.logits else self.probs(naive.softmax(z), t)

    def of_probs(self, u: Tensor, t: int, xi: float | None = None) -> Tensor:
        return self.probs(u, t)

    def gradient(self, z: Tensor, t: int) -> Tensor:
        return self.closed(naive.softmax(z), t)


def nothing(num_classes: int) -> float:
    """The value at the correct one-hot of a loss that is 0 there."""
    return 0.0


@dataclass(frozen=True)
class Case:
    """A loss, its naive formula and what it claims.

    `factory` takes the number of classes if `sized`, else nothing. `floor` is the least value of a
    bounded loss and its value at the correct one-hot, by number of classes. A law named in `breaks`
    must fail. `entry` is the name of the catalogue entry that the case stands for; then `bound` is
    the least upper bound for 5 classes where it is easy, an upper bound elsewhere, and `settings`
    are other parameters, at which the naive `formula` of logits, label and parameters is compared.
    """

    id: str
    factory: Callable[..., Any]
    terms: tuple[Separated | Reduced | Cosine | Either | Published, ...]
    symmetric: bool
    bounded: bool
    smooth: bool = True
    scale: float = 1.0  # about the largest gradient entry
    floor: Callable[[int], float] = nothing
    breaks: frozenset[str] = frozenset()
    entry: str = ""
    sized: bool = False
    bound: float | None = None
    settings: tuple[dict[str, Any], ...] = ()
    formula: Callable[..., Tensor] | None = None

    def __post_init__(self) -> None:
        assert self.breaks <= LAWS, f"unknown laws: {set(self.breaks - LAWS)}"

    def make(self, num_classes: int = 5) -> Any:
        """The loss, for this number of classes if it depends on it."""
        return self.factory(num_classes) if self.sized else self.factory()

    def naive(self, z: Tensor, t: int) -> Tensor:
        return sum(term.value(z, t) for term in self.terms)

    def naive_of_probs(self, u: Tensor, t: int, xi: float | None = None) -> Tensor:
        return sum(term.of_probs(u, t, xi) for term in self.terms)

    def closed_form_gradient(self, z: Tensor, t: int) -> Tensor:
        return sum(term.gradient(z, t) for term in self.terms)

    @property
    def is_reduction(self) -> bool:
        return all(isinstance(term, Reduced) for term in self.terms)

    @property
    def is_separation(self) -> bool:
        return all(isinstance(term, Separated) for term in self.terms)

    @property
    def has_closed_form_gradient(self) -> bool:
        return all(not isinstance(term, Published) or term.closed for term in self.terms)


class Catalogue(list[Case]):
    """Cases of catalogue entries, each added with its naive formula.

    A formula is plain float64 for one sample, written from the paper and from nothing else: of the
    probabilities, or of the logits if it says so, the label, and the parameters by the names and
    defaults that the catalogue promises.
    """

    def entry(
        self,
        name: str,
        *,
        bound: float | None = None,
        settings: tuple[dict[str, Any], ...] | list[dict[str, Any]] = (),
        **claims: Any,
    ) -> Callable[[Formula], Formula]:
        """Add the case of an entry at its defaults; a loss without a bound is unbounded."""

        def add(formula: Formula) -> Formula:
            more = {"entry": name, "bound": bound, "settings": tuple(settings)}
            self.add(name, name, formula, bounded=bound is not None, **more, **claims)
            return formula

        return add

    def add(
        self,
        id: str,
        name: str,
        formula: Callable[..., Tensor],
        parameters: dict[str, Any] | None = None,
        *,
        of_logits: bool = False,
        symmetric: bool = False,
        bounded: bool = True,
        floor: Callable[[int], float] | float = 0.0,
        closed: Callable[[Tensor, int], Tensor] | None = None,
        needs: Callable[[int], dict[str, Any]] | None = None,
        **claims: Any,
    ) -> None:
        """Add a case of an entry at other parameters.

        Args:
            id: Of the case.
            name: Of the entry.
            formula: Of the probabilities, the label and the parameters.
            parameters: Those that are not the defaults.
            of_logits: Whether the formula takes logits.
            symmetric: Whether the sum over labels is constant.
            bounded: Whether it is bounded.
            floor: Its value at the correct one-hot, by number of classes if that matters.
            closed: The gradient in the logits, as a function of the probabilities.
            needs: Parameters without a default, by number of classes.
            claims: Other fields of `Case`.
        """
        given = parameters or {}

        def plain(x: Tensor, t: int) -> Tensor:
            return formula(x, t, **given)

        def from_logits(z: Tensor, t: int, /, **settings: Any) -> Tensor:
            return formula(z if of_logits else naive.softmax(z), t, **settings)

        published = Published(None if of_logits else plain, plain if of_logits else None, closed)
        self.append(
            Case(
                id,
                lambda k=5: lossforge.make(name, **given, **(needs(k) if needs else {})),
                (published,),
                symmetric=symmetric,
                bounded=bounded,
                floor=floor if callable(floor) else lambda _: floor,
                sized=needs is not None,
                formula=from_logits,
                **claims,
            )
        )
