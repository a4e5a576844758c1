r"""lam TS + mu BR on CUDA: value and gradient of each row in one launch of a Triton kernel.

With u the softmax of a row of logits z, t its label, r its rivals that are not masked, :math:`v =
\sum_{i \ne t} u_i` and :math:`A = \sum_{i \ne t} u_i \varphi(u_i)`, target separation is

.. math::
    \text{value} &= v Q(v) + a \sum_{i \ne t} u_i P(u_i), \qquad a = \max(\tau / r, a_0) \\
    \partial_{z_t} &= -u_t (\varphi(u_t) v + a A) \\
    \partial_{z_k} &= u_k (a \varphi(u_k) + u_t \varphi(u_t) - a A), \qquad k \ne t,

and binary reduction, with :math:`p_i = \sigma(z_t - z_i)` and :math:`q_i = \sigma(z_i - z_t)`, is

.. math::
    \text{value} = \frac{1}{\min(r, R)} \sum_{i \ne t} q_i Q(q_i), \qquad
    \partial_{z_i} = \frac{\varphi(p_i) p_i q_i}{\min(r, R)}, \qquad
    \partial_{z_t} = -\sum_{i \ne t} \partial_{z_i}.

Densities :math:`\varphi` and their means P over [0, x] and Q over [1 - y, 1] are polynomials. Both
p and q come from :math:`\exp(-|z_t - z_i|)`, which neither overflows nor cancels, whatever the
distance of the label from the largest logit. Sums have one float32 accumulator for each class of a
block, and are added up as a tree at the end. The tests interpret the kernel on the CPU and compile
it for devices, but no device has run it: there the exponential is the hardware's, whose relative
error grows from 2^-22 to about 1e-5 at terms that all but underflow.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

_BLOCK = 4096  # classes at a time, a power of 2
_PER_THREAD = 16


@dataclass(frozen=True)
class Form:
    """The numbers of lam TS + mu BR.

    Polynomials are coefficients of powers of 2x - 1, the lowest first: `Positive.single` in the
    power form.

    Attributes:
        lam: Coefficient of TS.
        tau: Its strength, divided by the number of rivals.
        a: The least that this quotient is taken for.
        density: phi of TS.
        up: The mean of phi over [0, x], of x.
        down: The mean of phi over [1 - y, 1], of y.
        mu: Coefficient of BR.
        rivals: The most that the sum over the rivals is divided by; their number if None.
        pair_density: phi of BR.
        pair_down: The mean of phi over [1 - y, 1], of y.
    """

    lam: float = 0.0
    tau: float = 0.0
    a: float = 0.0
    density: tuple[float, ...] = ()
    up: tuple[float, ...] = ()
    down: tuple[float, ...] = ()
    mu: float = 0.0
    rivals: int | None = None
    pair_density: tuple[float, ...] = ()
    pair_down: tuple[float, ...] = ()


def rows(logits: Tensor, target: Tensor, form: Form) -> tuple[Tensor, Tensor]:
    """Values (N,) and their gradients (N, C) of float32 logits (N, C) at labels (N,).

    A masked label has the value +inf and the gradient 0; a logit of NaN or +inf makes its row NaN.
    A label outside of the classes stands for an ignored row: value and gradient are 0 whatever the
    logits. Labels are not read by the host, so that the device never waits. Triton must be 3.4 or
    newer, which torch brings since 2.8: older ones take no tuples of coefficients.
    """
    from .triton_kernel import rows_kernel  # only builds of torch for CUDA bring triton

    n, classes = logits.shape
    if logits.dtype != torch.float32:
        raise TypeError(f"logits must be float32, got {logits.dtype}")
    logits, target = logits.contiguous(), target.contiguous()
    values, gradient = logits.new_empty(n), torch.empty_like(logits)
    if logits.numel() == 0:  # nothing to launch
        return values.zero_(), gradient
    block = min(_BLOCK, 1 << (classes - 1).bit_length())
    with torch.cuda.device_of(logits):  # type: ignore[no-untyped-call]
        rows_kernel[(n,)](
            logits,
            target,
            values,
            gradient,
            classes,
            form.lam,
            form.tau,
            form.a,
            form.mu,
            1 / form.rivals if form.rivals else 0.0,
            separated=bool(form.density),
            density=form.density,
            up=form.up,
            down=form.down,
            paired=bool(form.pair_density),
            pair_density=form.pair_density,
            pair_down=form.pair_down,
            block=block,
            num_warps=max(1, block // (32 * _PER_THREAD)),
        )
    return values, gradient
