"""Target separation and binary reduction in Triton: a program a row, its classes in blocks.

The only file that imports triton. `triton_rows` has the formulas and launches the kernel.
"""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def rows_kernel(
    logits,
    target,
    values,
    gradient,
    classes,
    lam,
    tau,
    least_a,
    mu,
    least_share,
    separated: tl.constexpr,
    density: tl.constexpr,
    up: tl.constexpr,
    down: tl.constexpr,
    paired: tl.constexpr,
    pair_density: tl.constexpr,
    pair_down: tl.constexpr,
    block: tl.constexpr,
):
    """Write value and gradient of one row of contiguous logits (N, classes) at its label."""
    row = tl.program_id(0).to(tl.int64)
    logits += row * classes
    gradient += row * classes
    label = tl.load(target + row)
    lanes = tl.arange(0, block)
    if (label < 0) | (label >= classes):
        for start in range(0, classes, block):
            at = start + lanes
            tl.store(gradient + at, tl.zeros([block], tl.float32), mask=at < classes)
        tl.store(values + row, 0.0)
    else:
        own = tl.load(logits + label)
        top, rest, share = _softmax(logits, label, classes, own, block)
        own_exp = tl.exp(own - top)
        total = rest + own_exp  # NaN if a logit is NaN or +inf
        inverse = 1 / total
        masked = own == float("-inf")
        # Infinite, with a gradient of 0, unless the value is NaN: that of a separated loss is where
        # there is no class at all.
        constant = masked & (total > 0 if separated else total == total)
        value, to_own, slope, common = 0.0, 0.0, 0.0, 0.0
        if separated:
            slope = lam * tl.maximum(tau * share, least_a)
            terms, slopes = _sums(logits, label, classes, top, inverse, density, up, block)
            own_u, rest_u = own_exp * inverse, rest * inverse
            pull, push = lam * own_u * _polynomial(own_u, density), slope * slopes
            value = lam * rest_u * _polynomial(rest_u, down) + slope * terms
            to_own = -(pull * rest_u + push * own_u)
            common = pull - push
        own = tl.where(masked, 0.0, own)
        factor = mu * tl.maximum(share, least_share)
        pair_terms = tl.zeros([block], tl.float32)
        pair_slopes = tl.zeros([block], tl.float32)
        for start in range(0, classes, block):
            at = start + lanes
            z = _rivals(logits, label, classes, at)
            to_rival = tl.zeros([block], tl.float32)
            if separated:
                u = tl.exp(z - top) * inverse
                to_rival += u * (slope * _polynomial(u, density) + common)
            if paired:
                p, q = _pair(own - z)
                pair_slope = factor * _polynomial(p, pair_density) * (p * q)
                pair_terms += q * _polynomial(q, pair_down)
                pair_slopes += pair_slope
                to_rival += pair_slope
            to_rival = tl.where(constant, 0.0, to_rival)
            # the label's place is another thread's, below
            tl.store(gradient + at, to_rival, mask=(at < classes) & (at != label))
        value += factor * tl.sum(pair_terms, 0)
        value = tl.where(total == total, value, float("nan"))
        to_own -= tl.where(masked, 0.0, tl.sum(pair_slopes, 0))
        tl.store(values + row, tl.where(constant, float("inf"), value))
        tl.store(gradient + label, to_own)


@triton.jit
def _rivals(logits, label, classes, at):
    """Logits of a block of classes, as if masked at the label and beyond the last."""
    z = tl.load(logits + at, mask=at < classes, other=float("-inf"))
    return tl.where(at == label, float("-inf"), z)


@triton.jit
def _softmax(logits, label, classes, own, block: tl.constexpr):
    """The largest logit, the sum over rivals of exp(z - largest), and one over their number.

    Where a logit is NaN the sum is: on a device a maximum passes over NaN.
    """
    lanes = tl.arange(0, block)
    tops = tl.full([block], float("-inf"), tl.float32)
    for start in range(0, classes, block):
        tops = tl.maximum(tops, _rivals(logits, label, classes, start + lanes))
    top = tl.maximum(tl.max(tops, 0), own)
    top = tl.where(top == float("-inf"), 0.0, top)
    sums = tl.zeros([block], tl.float32)
    counts = tl.zeros([block], tl.float32)
    for start in range(0, classes, block):
        z = _rivals(logits, label, classes, start + lanes)
        sums += tl.exp(z - top)
        counts += tl.where(z > float("-inf"), 1.0, 0.0)
    return top, tl.sum(sums, 0), 1 / tl.maximum(tl.sum(counts, 0), 1.0)


@triton.jit
def _sums(
    logits,
    label,
    classes,
    top,
    inverse,
    density: tl.constexpr,
    up: tl.constexpr,
    block: tl.constexpr,
):
    """The sums over rivals of H(u) = u P(u) and of u phi(u)."""
    lanes = tl.arange(0, block)
    terms = tl.zeros([block], tl.float32)
    slopes = tl.zeros([block], tl.float32)
    for start in range(0, classes, block):
        u = tl.exp(_rivals(logits, label, classes, start + lanes) - top) * inverse
        terms += u * _polynomial(u, up)
        slopes += u * _polynomial(u, density)
    return tl.sum(terms, 0), tl.sum(slopes, 0)


@triton.jit
def _pair(d):
    """sigmoid(d) and sigmoid(-d), both to full relative accuracy, by one exponential."""
    odds = tl.exp(-tl.abs(d))
    larger = 1 / (1 + odds)
    smaller = odds * larger
    return tl.where(d >= 0, larger, smaller), tl.where(d >= 0, smaller, larger)


@triton.jit
def _polynomial(x, powers: tl.constexpr):
    """A polynomial in s = 2x - 1, its coefficients from the lowest power up."""
    s = 2 * x - 1
    result = 0 * s + powers[len(powers) - 1]
    for k in tl.static_range(1, len(powers)):
        result = result * s + powers[len(powers) - 1 - k]
    return result
