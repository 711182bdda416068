"""Local search, the second half of the separation oracle: from points of a scan to local maxima on a domain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.index.domain import Domain

# In three dimensions and more a scan is coarse: its best points are first moved along each axis.
_SWEPT, _SWEEP_POINTS, _SWEEPS = 16, 65, 2
# Polishing ends when a step is this small in units of the domain's width, or changes nothing.
_SMALLEST_STEP = 1e-13
_ROUNDS = 120
# Halvings of a step that fell outside the domain: to a thousand millionth of it.
_BISECTIONS = 30


def sweep(
    function: Callable[[FloatArray], FloatArray], domain: Domain, starts: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Move the best starts along each axis in turn to the highest of many points on it.

    Where a row is a product or sum of functions of single coordinates, this finds the best combination of their
    peaks, of which a scan in several dimensions sees hardly any.
    """
    chosen = np.argsort(-values, kind="stable")[:_SWEPT]
    points, best = starts[chosen], values[chosen]
    share = np.linspace(0, 1, _SWEEP_POINTS)
    for _ in range(_SWEEPS):
        for axis in range(domain.dimension):
            line = np.repeat(points[:, None, :], _SWEEP_POINTS, axis=1)
            line[:, :, axis] = domain.lower[axis] * (1 - share) + domain.upper[axis] * share
            flat_line = line.reshape(-1, domain.dimension)
            inside = domain.contains(flat_line)
            all_heights = np.full(len(flat_line), -np.inf)
            if inside.any():
                all_heights[inside] = function(flat_line[inside])
            heights = all_heights.reshape(line.shape[:2])
            pick = np.argmax(heights, axis=1)
            row = np.arange(len(points))
            better = heights[row, pick] > best
            points[better], best[better] = line[row, pick][better], heights[row, pick][better]
    return points, best


def polish(
    function: Callable[[FloatArray], FloatArray],
    domain: Domain,
    starts: FloatArray,
    values: FloatArray,
    *,
    step: float,
    flat: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Local search from every start for a maximum within the domain; all starts advance together.

    Parameters
    ----------
    step : float
        First step in units of the domain's width.
    flat : array
        For each start, a change of the function that counts as none.
    """
    dimension = domain.dimension
    random = np.random.default_rng(0)
    points, best = starts.copy(), values.copy()
    steps = np.full(len(points), step)
    # Directions of each point's stencil: the axes, until it lies on a curved boundary.
    frames = np.tile(np.eye(dimension), (len(points), 1, 1))
    going = np.arange(len(points))
    # Along a kink or a curved boundary few directions lead upwards: there a step gets more tries.
    shrink = 0.2 if dimension == 1 else 0.4

    def evaluate(trial: FloatArray, anchors: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Bring trial points (k, s, d) into the domain and evaluate them; tell which were pulled inside."""
        trial = np.clip(trial, domain.lower, domain.upper).reshape(-1, dimension)
        pulled = np.zeros(len(trial), dtype=bool)
        if domain.inside is not None:
            trial, pulled = _pull_inside(trial, np.repeat(anchors, len(trial) // len(anchors), axis=0), domain)
        shape = (len(anchors), -1)
        return trial.reshape(*shape, dimension), function(trial).reshape(shape), pulled.reshape(shape)

    for _ in range(_ROUNDS):
        if not len(going):
            break
        here, height, reach = points[going], best[going], steps[going]
        anchors = _inner_points(here, reach, domain, random)
        moves = _directions(frames[going], random) * reach[:, None, None]
        trial, found, pulled = evaluate(here[:, None, :] + moves * domain.width, anchors)
        change = np.abs(found - height[:, None]).max(axis=1)
        displacement = (trial - here[:, None, :]) / domain.width
        step_to_top = _newton(height, frames[going], displacement, found, reach)
        newton, newton_height, _ = evaluate((here + step_to_top * domain.width)[:, None, :], anchors)
        pick = np.argmax(found, axis=1)
        row = np.arange(len(going))
        by_newton = newton_height[:, 0] >= found[row, pick]
        new_height = np.where(by_newton, newton_height[:, 0], found[row, pick])
        new_points = np.where(by_newton[:, None], newton[:, 0], trial[row, pick])
        better = new_height > height
        points[going[better]], best[going[better]] = new_points[better], new_height[better]
        # A long move says that the step is too short, a short Newton move that the maximum is near.
        moved = np.abs((new_points - here) / domain.width).max(axis=1) / reach
        steps[going[better & (moved > 1.5)]] *= 2.0
        steps[going[better & (moved < 0.5)]] *= shrink
        steps[going[~better]] *= shrink
        steps = np.minimum(steps, 0.25)
        frames[going] = _boundary_frames(frames[going], displacement, pulled)
        going = going[(steps[going] > _SMALLEST_STEP) & (change > flat[going])]
    return points, best


def _directions(frames: FloatArray, random: np.random.Generator) -> FloatArray:
    """Steps to try from each point: along its frame, along pairs of it, and in fresh random directions."""
    count, dimension, _ = frames.shape
    if dimension == 1:
        return np.concatenate([frames, -frames], axis=1)
    pairs = np.stack([frames[:, i] + frames[:, j] for i in range(dimension) for j in range(i)], axis=1)
    turned = np.tile(np.linalg.qr(random.normal(size=(dimension, dimension)))[0], (count, 1, 1))
    return np.concatenate([frames, -frames, pairs, turned, -turned], axis=1)


def _newton(
    height: FloatArray, frames: FloatArray, displacement: FloatArray, found: FloatArray, reach: FloatArray
) -> FloatArray:
    """Step to the maximizer of the quadratic through the stencil, at most four steps along each direction.

    Steps cut short by the domain have other lengths on both sides; a direction in which only one side is
    left is held. Points pulled back to a curved boundary carry its curvature in their values.
    """
    count, dimension, _ = frames.shape
    axis = np.arange(dimension)
    along = np.einsum("ksd,kid->ksi", displacement[:, : 2 * dimension], frames)
    ahead, behind = along[:, axis, axis], -along[:, dimension + axis, axis]
    up = found[:, :dimension] - height[:, None]
    down = found[:, dimension : 2 * dimension] - height[:, None]
    least = 1e-3 * reach[:, None]
    both = (ahead > least) & (behind > least)
    a, b = np.where(both, ahead, 1.0), np.where(both, behind, 1.0)
    with np.errstate(all="ignore"):
        slope = np.where(both, (up * b * b - down * a * a) / (a * b * (a + b)), 0.0)
        bend = np.where(both, 2 * (up * b + down * a) / (a * b * (a + b)), -1.0)
        hessian = np.zeros((count, dimension, dimension))
        hessian[:, axis, axis] = bend
        k = 2 * dimension
        for i in range(dimension):
            for j in range(i):
                mixed = (found[:, k] - height - up[:, i] - up[:, j]) / (a[:, i] * a[:, j])
                hessian[:, i, j] = hessian[:, j, i] = np.where(both[:, i] & both[:, j], mixed, 0.0)
                k += 1
    # In steps of reach the matrix is well scaled; directions that bend upwards are turned over.
    scaled = np.nan_to_num(hessian * (reach**2)[:, None, None], posinf=0.0, neginf=0.0)
    values, vectors = np.linalg.eigh(scaled)
    values = -np.maximum(np.abs(values), 1e-12 * np.abs(values).max(axis=1, keepdims=True) + 1e-300)
    slopes = np.einsum("kij,ki->kj", vectors, np.nan_to_num(slope * reach[:, None], posinf=0.0, neginf=0.0))
    with np.errstate(over="ignore"):
        along_axes = np.clip(slopes / values, -1e3, 1e3)
    step = -np.einsum("kij,kj->ki", vectors, along_axes)
    return np.einsum("ki,kid->kd", np.clip(step, -4, 4) * reach[:, None], frames)


def _boundary_frames(frames: FloatArray, displacement: FloatArray, pulled: BoolArray) -> FloatArray:
    """Turn the frames of points on a curved boundary so that all directions but the last lie along it.

    Trial points that were pulled inside lie on the boundary, so their displacements span its tangent.
    """
    dimension = frames.shape[1]
    if dimension == 1 or not pulled.any():
        return frames
    turned = pulled.sum(axis=1) >= dimension
    if turned.any():
        frames = frames.copy()
        frames[turned] = np.linalg.svd(np.where(pulled[turned, :, None], displacement[turned], 0.0))[2]
    return frames


def _inner_points(here: FloatArray, reach: FloatArray, domain: Domain, random: np.random.Generator) -> FloatArray:
    """Points deeper inside the domain than those given, by about a step.

    The mean of the sampled places around a point that belong to the domain leads away from its boundary;
    trial points that fall outside are pulled back towards it, and so move along the boundary.
    """
    if domain.inside is None:
        return here
    spread = random.normal(size=(8 * domain.dimension, domain.dimension))
    spread /= np.linalg.norm(spread, axis=1, keepdims=True)
    around = here[:, None, :] + 2 * spread * reach[:, None, None] * domain.width
    inside = domain.contains(around.reshape(-1, domain.dimension)).reshape(around.shape[:2])
    share = np.maximum(inside.sum(axis=1, keepdims=True), 1)
    deeper = here + (np.where(inside[:, :, None], around - here[:, None, :], 0.0)).sum(axis=1) / share
    return np.where(domain.contains(deeper)[:, None], deeper, here)


def _pull_inside(points: FloatArray, anchors: FloatArray, domain: Domain) -> tuple[FloatArray, BoolArray]:
    """Move points outside the domain towards their anchors until they are inside; tell which were moved."""
    assert domain.inside is not None
    outside: BoolArray = ~domain.inside(points)
    if outside.any():
        near, far = anchors[outside], points[outside]
        for _ in range(_BISECTIONS):
            middle = (near + far) / 2
            inside = domain.inside(middle)[:, None]
            near, far = np.where(inside, middle, near), np.where(inside, far, middle)
        points = points.copy()
        points[outside] = near
    return points, outside
