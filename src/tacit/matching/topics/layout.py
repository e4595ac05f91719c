"""Topics as circles on a flat map: near ones side by side, none above another.

The plane is that of the two widest directions of the topics, weighed by their noisy counts; then circles that cover
each other are pushed apart. A function of released numbers and public directions.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats

ROUNDS = 400
GAP = 0.012
PULL = 0.02


def circles(directions: Floats, totals: Floats, *, filled: float = 0.48, aspect: float = 1.5) -> tuple[Floats, Floats]:
    """Places (topics, 2) and radii of circles whose areas are as the counts, on a map of height 1 and width `aspect`.

    filled   the part of the map that circles cover together
    """
    weights = np.maximum(totals, 0.0)
    weights = np.maximum(weights, max(float(weights.max(initial=0.0)) * 0.01, 1e-9))
    radii = np.sqrt(filled * aspect * weights / weights.sum() / np.pi)
    centered = directions - np.average(directions, axis=0, weights=weights)
    _, _, axes = np.linalg.svd(centered * np.sqrt(weights)[:, None], full_matrices=False)
    axes = axes * np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]  # svd leaves signs open
    flat = centered @ axes[:2].T
    if flat.shape[1] < 2:
        flat = np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))
    # Ranks, half and half with the places: a few topics far away would press all others together.
    ranked = np.argsort(np.argsort(flat, axis=0, kind="stable"), axis=0, kind="stable") / max(1, len(flat) - 1) - 0.5
    places = 0.5 * ranked + 0.25 * flat / np.maximum(np.abs(flat).max(axis=0), 1e-9)
    places = places * np.array([aspect, 1.0])
    return _apart(places, radii, aspect), radii


def _apart(places: Floats, radii: Floats, aspect: float) -> Floats:
    """Places from which circles that cover each other were pushed apart, and which lie on the map."""
    reach = np.array([aspect, 1.0]) / 2
    moved = places.copy()
    for round_number in range(ROUNDS):
        between = moved[:, None] - moved[None]
        distance = np.sqrt((between**2).sum(axis=2)) + np.eye(len(moved))
        wanted = radii[:, None] + radii[None] + GAP
        push = np.maximum(0.0, wanted - distance)
        np.fill_diagonal(push, 0.0)
        step = (between / np.maximum(distance, 1e-6)[:, :, None] * push[:, :, None]).sum(axis=1) / 2
        pull = PULL * (places - moved) if round_number < ROUNDS // 2 else 0.0
        moved = np.clip(moved + step + pull, -reach + radii[:, None], reach - radii[:, None])
    return np.asarray(moved)
