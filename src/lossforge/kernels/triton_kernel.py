"""A sum of base functions in Triton: a program a row, its classes in blocks.

The only file that imports triton. `triton_rows` has the formulas and launches the kernel.

The terms of a role come as two tuples of numbers. `strength` has two for each different strength,
what the rivals share and the least of it; `series` has two polynomials for each, density and mean,
all of one length.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

VERSION = triton.__version__
if tuple(map(int, VERSION.split(".")[:2])) < (3, 4):  # it takes no tuples of coefficients
    raise ImportError(f"triton must be 3.4 or newer, got {VERSION}")

DENSITY, MEAN = tl.constexpr(0), tl.constexpr(1)


@triton.jit
def rows_kernel(
    logits,
    target,
    values,
    gradient,
    classes,
    by,
    constant,
    own_strength: tl.constexpr,
    own_series: tl.constexpr,
    other_strength: tl.constexpr,
    other_series: tl.constexpr,
    pair_strength: tl.constexpr,
    pair_series: tl.constexpr,
    block: tl.constexpr,
):
    """Write a row's value and, unless `gradient` is None, its gradient times `by`."""
    row = tl.program_id(0).to(tl.int64)
    logits += row * classes
    label = tl.load(target + row)
    is_class = (label >= 0) & (label < classes)
    tl.device_assert(is_class, "target must be a class")
    label = tl.where(is_class, label, 0)
    own = tl.where(is_class, tl.load(logits + label), float("nan"))
    top, rest, rivals = _softmax(logits, label, classes, own, block)
    own_exp = tl.exp(own - top)
    total = rest + own_exp  # NaN if a logit is NaN or +inf
    inverse = 1 / total
    own_u, rest_u = own_exp * inverse, rest * inverse

    value, pull, push = constant, 0.0, 0.0
    if len(own_strength) > 0:
        pull = own_u * _sum(own_u, rivals, own_strength, own_series, DENSITY)
        value += rest_u * _sum(rest_u, rivals, own_strength, own_series, MEAN)
    if len(other_strength) > 0:
        terms, push = _others(
            logits, label, classes, top, inverse, rivals, other_strength, other_series, block
        )
        value += terms

    # NaN, value and gradient, where a logit is NaN or +inf, and where all classes are masked. A
    # masked label otherwise: infinite, with a gradient of 0.
    is_known = total > 0
    masked = own == float("-inf")
    infinite = masked & is_known
    softened = len(own_strength) + len(other_strength) > 0
    own = tl.where(masked, 0.0, own)
    lanes = tl.arange(0, block)
    pair_terms, pair_slopes = tl.zeros([block], tl.float32), tl.zeros([block], tl.float32)
    if len(pair_strength) > 0 or gradient is not None:
        for start in range(0, classes, block):
            at = start + lanes
            z = _rivals(logits, label, classes, at)
            slope = tl.zeros([block], tl.float32)
            if len(pair_strength) > 0:
                p, q = _pair(own - z)
                slope += p * q * _sum(p, rivals, pair_strength, pair_series, DENSITY)
                pair_slopes += slope
                pair_terms += q * _sum(q, rivals, pair_strength, pair_series, MEAN)
            if gradient is not None:
                if softened:
                    u = tl.exp(z - top) * inverse
                    each = pull - push
                    if len(other_strength) > 0:
                        each += _sum(u, rivals, other_strength, other_series, DENSITY)
                    slope += u * each
                slope = tl.where(infinite, 0.0, by * slope)
                slope = tl.where(is_known, slope, float("nan"))
                place = gradient + row * classes + at
                # the label's place is another thread's, below
                tl.store(place, slope, mask=(at < classes) & (at != label))
    value += tl.sum(pair_terms, 0)
    value = tl.where(is_known, value, float("nan"))
    tl.store(values + row, tl.where(infinite, float("inf"), value))
    if gradient is not None:
        to_own = tl.where(masked, 0.0, -tl.sum(pair_slopes, 0))
        if softened:
            to_own -= pull * rest_u + push * own_u
        tl.store(gradient + row * classes + label, tl.where(is_known, by * to_own, float("nan")))


@triton.jit
def _rivals(logits, label, classes, at):
    """Logits of a block of classes, as if masked at the label and beyond the last."""
    z = tl.load(logits + at, mask=at < classes, other=float("-inf"))
    return tl.where(at == label, float("-inf"), z)


@triton.jit
def _softmax(logits, label, classes, own, block: tl.constexpr):
    """The largest logit, the sum over rivals of exp(z - largest), and their number, at least 1.

    Where a logit is NaN the sum is: on a device a maximum passes over NaN.
    """
    lanes = tl.arange(0, block)
    tops = tl.full([block], float("-inf"), tl.float32)
    for start in range(0, classes, block):
        tops = tl.maximum(tops, _rivals(logits, label, classes, start + lanes))
    top = tl.maximum(tl.max(tops, 0), own)
    top = tl.where(top == float("-inf"), 0.0, top)
    sums, counts = tl.zeros([block], tl.float32), tl.zeros([block], tl.float32)
    for start in range(0, classes, block):
        z = _rivals(logits, label, classes, start + lanes)
        sums += tl.exp(z - top)
        counts += tl.where(z > float("-inf"), 1.0, 0.0)
    return top, tl.sum(sums, 0), tl.maximum(tl.sum(counts, 0), 1.0)


@triton.jit
def _others(
    logits,
    label,
    classes,
    top,
    inverse,
    rivals,
    strength: tl.constexpr,
    series: tl.constexpr,
    block: tl.constexpr,
):
    """The sums over rivals of H(u) = u P(u) and of u phi(u)."""
    lanes = tl.arange(0, block)
    terms, slopes = tl.zeros([block], tl.float32), tl.zeros([block], tl.float32)
    for start in range(0, classes, block):
        u = tl.exp(_rivals(logits, label, classes, start + lanes) - top) * inverse
        terms += u * _sum(u, rivals, strength, series, MEAN)
        slopes += u * _sum(u, rivals, strength, series, DENSITY)
    return tl.sum(terms, 0), tl.sum(slopes, 0)


@triton.jit
def _pair(d):
    """sigmoid(d) and sigmoid(-d), both to full relative accuracy, by one exponential."""
    odds = tl.exp(-tl.abs(d))
    larger = 1 / (1 + odds)
    smaller = odds * larger
    return tl.where(d >= 0, larger, smaller), tl.where(d >= 0, smaller, larger)


@triton.jit
def _sum(x, rivals, strength: tl.constexpr, series: tl.constexpr, which: tl.constexpr):
    """The densities or the means of a role at x, each times its strength in this row."""
    s = 2 * x - 1
    result = 0 * s
    length: tl.constexpr = len(series) // len(strength)
    for j in tl.static_range(len(strength) // 2):
        share = tl.maximum(strength[2 * j] / rivals, strength[2 * j + 1])
        result += share * _polynomial(s, series, (2 * j + which) * length, length)
    return result


@triton.jit
def _polynomial(s, series: tl.constexpr, first: tl.constexpr, length: tl.constexpr):
    """A polynomial in s = 2x - 1, its coefficients from the lowest power up."""
    result = 0 * s + series[first + length - 1]
    for k in tl.static_range(2, length + 1):
        result = result * s + series[first + length - k]
    return result
