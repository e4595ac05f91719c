"""Drawings of a release."""

import re

from tacit.report.release_figures import WIDTH, Cloud, Mark, cloud_figure


def test_circles_of_uncertainty_are_drawn_whole() -> None:
    cloud = Cloud([(0.01 * place, 0.01 * (place % 7)) for place in range(100)], "s1")
    marks = [Mark("refund", (0.99, 0.03), 0.4, "s1"), Mark("delivery", (0.0, 0.06), 0.05, "s2")]
    drawn = cloud_figure("map", [cloud], marks, "a map").svg
    circles = [
        tuple(float(re.search(rf'\b{name}="([-\d.]+)"', circle)[1]) for name in ("cx", "cy", "r"))  # type: ignore[index]
        for circle in re.findall(r"<circle[^>]*noise[^>]*>", drawn)
    ]
    assert len(circles) == len(marks)
    for x, y, radius in circles:
        assert radius <= x <= WIDTH - radius
        assert radius <= y <= 400 - radius
