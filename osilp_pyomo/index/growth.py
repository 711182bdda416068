"""What a formula can be beyond a far place on an index without end: sums of powers with enclosed coefficients.

Between a place r > 1 and infinity, ``u = side * v`` with v >= r. A formula is kept as ``sum_k c_k v**k`` with an
interval for each c_k, so that ``u**2 - 3 u`` is still told from ``u**2 + 3 u`` where both are infinite. Sums, products
and whole powers of such sums are sums of powers again; any other function is one number in an interval, from the range
of its argument. Where that interval has an infinite end nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.enclosures import intervals as iv
from osilp_pyomo.index.enclosures.enclosure import Condition, Enclosure, NoEnclosureError, Opening
from osilp_pyomo.index.enclosures.intervals import Interval
from osilp_pyomo.index.formula import Formula
from osilp_pyomo.index.nodes import NODES

# Powers beyond this are not kept apart, and that below which an exponential is said to fall.
_MOST, _DECAY = 64, 24
_NOTHING = iv.exact(0.0)


class Growth:
    """A function of v >= ``far`` as a sum of whole powers of v, some of them negative, with enclosed coefficients."""

    def __init__(self, powers: dict[int, Interval], far: float) -> None:
        if any(abs(power) > _MOST for power in powers):
            raise NoEnclosureError("a power is too high to be followed to infinity")
        self.powers = powers
        self.far = far

    def of(self, powers: dict[int, Interval]) -> Growth:
        """Another function beyond the same place."""
        return Growth(powers, self.far)

    def __add__(self, other: Growth) -> Growth:
        total = dict(self.powers)
        for power, each in other.powers.items():
            total[power] = iv.add(total[power], each) if power in total else each
        return self.of(total)

    def __neg__(self) -> Growth:
        return self.of({power: iv.negative(each) for power, each in self.powers.items()})

    def __mul__(self, other: Growth) -> Growth:
        total = self.of({})
        for power, each in self.powers.items():
            total = total + self.of({power + k: _product(each, factor) for k, factor in other.powers.items()})
        return total

    def leading(self) -> tuple[int, Interval]:
        """The highest power, and what the function divided by it can be; power 0 where it does not grow."""
        top = max([0, *(power for power, each in self.powers.items() if np.any(each[0] != 0) or np.any(each[1] != 0))])
        total = self.powers.get(top, _NOTHING)
        for power, each in self.powers.items():
            if power < top:
                with np.errstate(all="ignore"):
                    share = np.nextafter(np.float64(self.far) ** float(power - top), np.inf)
                total = iv.add(total, iv.multiply(each, (np.array(0.0), np.array(share))))
        return top, total

    def range(self) -> Interval:
        """What it can be beyond the place."""
        top, (low, high) = self.leading()
        if top == 0:
            return low, high
        with np.errstate(all="ignore"):
            least = np.minimum(np.nextafter(np.float64(self.far) ** top, 0.0), np.finfo(float).max)
            # From a place on it keeps its sign, or nothing is known.
            below = np.where(low > 0, np.nextafter(low * least, 0.0), np.where(low == 0, 0.0, -np.inf))
            above = np.where(high < 0, np.nextafter(high * least, 0.0), np.where(high == 0, 0.0, np.inf))
        return below, above


def _product(one: Interval, other: Interval) -> Interval:
    """The product of two intervals; zero times anything stays zero, without a margin."""
    low, high = iv.multiply(one, other)
    zero = ((one[0] == 0) & (one[1] == 0)) | ((other[0] == 0) & (other[1] == 0))
    return (np.where(zero, 0.0, low), np.where(zero, 0.0, high)) if np.any(zero) else (low, high)


def growth_of(formula: Formula, slots: Sequence[Any], axes: Sequence[Growth]) -> Growth:
    """A formula beyond a place, from its data and from what its coordinates are there.

    Raises
    ------
    NoEnclosureError
        A part of it, such as a curve, is not known there.
    """
    far = axes[0].far

    def number(value: Any) -> Growth:
        if not isinstance(value, np.ndarray):
            raise NoEnclosureError("a curve is not followed to infinity")
        return Growth({0: iv.exact(value)}, far)

    found = formula.fold(
        lambda text: number(np.array(float(text))),
        [number(slot) for slot in slots],
        axes.__getitem__,
        lambda name, parts: _node(name, parts, far),
    )
    if not isinstance(found, Growth):
        raise NoEnclosureError("a condition stands where a number is expected")
    return found


def _node(name: str, parts: list[Any], far: float) -> Any:
    """A node from its arguments."""
    numbers = all(isinstance(part, Growth) for part in parts)
    if name == "same":
        return parts[0]
    if name == "if":
        return _chosen(*parts)
    if name == "+" and numbers:
        return sum(parts[1:], parts[0])
    if name == "-" and numbers:
        return -parts[0]
    if name == "*" and numbers:
        return parts[0] * parts[1]
    if name == "/" and numbers and len(parts[1].powers) == 1:
        ((power, divisor),) = parts[1].powers.items()
        return parts[0] * parts[0].of({-power: _finite(iv.reciprocal(divisor))})
    if name == "**" and numbers:
        raised = _raised(*parts)
        if raised is not None:
            return raised
    if name == "exp" and numbers:
        falling = _decaying(parts[0])
        if falling is not None:
            return falling
    if name == "abs" and numbers:
        low, high = parts[0].range()
        return parts[0] if np.all(low >= 0) else -parts[0] if np.all(high <= 0) else _by_range(name, parts, far)
    if name in ("min", "max") and numbers:
        return _extreme(name, parts, far)
    if name in ("<=", "<", "==", "!=") and numbers:
        # The difference, in which what both have in common is gone.
        return NODES[name].enclose([_enclosed(parts[0] + -parts[1]), Enclosure(_NOTHING)], _opening())
    return _by_range(name, parts, far)


def _extreme(name: str, parts: list[Growth], far: float) -> Growth:
    """The argument that is beyond all others everywhere, or what is known of the ranges of all."""
    for part in parts:
        gaps = [(part + -other if name == "max" else other + -part).range()[0] for other in parts if other is not part]
        if all(np.all(gap >= 0) for gap in gaps):
            return part
    found: Growth = _by_range(name, parts, far)
    return found


def _raised(base: Growth, exponent: Growth) -> Growth | None:
    """A power with whole exponents, each column with its own; None for others."""
    low, high = exponent.powers.get(0, _NOTHING)
    if set(exponent.powers) != {0} or low is not high:
        return None
    result = base.of({})
    for each in np.unique(low).tolist():
        raised = _whole_power(base, each)
        if raised is None:
            return None
        own = low == each
        masked = {power: (np.where(own, ends[0], 0.0), np.where(own, ends[1], 0.0)) for power, ends in raised.items()}
        result = result + base.of(raised if own.all() else masked)
    return result


def _whole_power(base: Growth, exponent: float) -> dict[int, Interval] | None:
    """Powers of a sum of powers; of the inverse only where it is a single one."""
    count = int(exponent)
    if count != exponent or abs(count) > _MOST or (count < 0 and len(base.powers) != 1):
        return None
    if count < 0:
        ((power, each),) = base.powers.items()
        base, count = base.of({-power: _finite(iv.reciprocal(each))}), -count
    result = base.of({0: iv.exact(1.0)})
    for _ in range(count):
        result = result * base
    return result.powers


def _decaying(argument: Growth) -> Growth | None:
    """The exponential of what falls at least like -c v: below any power of v; None for others."""
    top, (_, high) = argument.leading()
    if top < 1 or not np.all(high < 0):
        return None
    # v**n exp(-c v) falls from v = n / c on.
    steepest = float(np.max(high))
    if not -steepest * argument.far > _DECAY:
        return None
    with np.errstate(all="ignore"):
        most = float(np.exp(_DECAY * np.log(argument.far) + steepest * argument.far))
    return argument.of({-_DECAY: (np.array(0.0), np.array(most * (1 + 1e-9) + 1e-300))})


def _chosen(condition: Any, yes: Any, no: Any) -> Growth:
    """One of two by a condition; where it is open, what either can be, power by power."""
    if not isinstance(yes, Growth) or not isinstance(no, Growth) or not isinstance(condition, Condition):
        raise NoEnclosureError("a condition stands where a number is expected")
    powers = {}
    for power in yes.powers.keys() | no.powers.keys():
        one, other = yes.powers.get(power, _NOTHING), no.powers.get(power, _NOTHING)
        either = iv.hull(one, other)
        powers[power] = iv.choose(condition.holds, one, iv.choose(condition.fails, other, either))
    return yes.of(powers)


def _by_range(name: str, parts: list[Any], far: float) -> Any:
    """Any other node, from what its arguments can be beyond the place."""
    found = NODES[name].enclose([_enclosed(part) if isinstance(part, Growth) else part for part in parts], _opening())
    if isinstance(found, Condition):
        return found
    return Growth({0: _finite(found.value)}, far)


def _enclosed(part: Growth) -> Enclosure:
    low, high = part.range()
    return Enclosure((np.atleast_2d(low), np.atleast_2d(high)))


def _finite(value: Interval) -> Interval:
    if not (np.all(np.isfinite(value[0])) and np.all(np.isfinite(value[1]))):
        raise NoEnclosureError("a function grows beyond every number, or by no whole power")
    return value


def _opening() -> Opening:
    return Opening(1, 0)


def axis_beyond(far: float, side: int) -> Growth:
    """The coordinate itself beyond ``side * far``, in its direction."""
    return Growth({1: iv.exact(float(side))}, far)


def axis_between(low: float, high: float, far: float) -> Growth:
    """Another coordinate, which lies between two ends."""
    if not (np.isfinite(low) and np.isfinite(high)):
        raise NoEnclosureError("several coordinates without an end are not followed together")
    return Growth({0: (np.array(low), np.array(high))}, far)


def weighted_sum(parts: Sequence[tuple[Growth, FloatArray]], far: float) -> Growth:
    """The sum over parts, and over the columns of each, of columns times weights."""
    total = Growth({}, far)
    for growth, weights in parts:
        size = float(np.abs(weights).sum())
        powers = {}
        for power, each in growth.powers.items():
            product = iv.multiply(each, iv.exact(weights[:, None]))
            low, high = (np.broadcast_to(end, (len(weights), 1)) for end in product)
            # A sum in any order misses at most this share of the sum of its absolute terms.
            lost = len(weights) * 2.0**-52 * np.maximum(np.abs(low), np.abs(high)).sum() + size * 1e-300
            if len(weights) == 1:
                powers[power] = (low[0, 0], high[0, 0])
            else:
                powers[power] = (low.sum() - lost, high.sum() + lost)
        total = total + Growth({power: (np.array(low), np.array(high)) for power, (low, high) in powers.items()}, far)
    return total
