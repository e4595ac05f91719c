"""Pictures of reports: words that do not cover each other."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.report.svg import spread_apart

places = st.lists(st.tuples(st.floats(0, 700), st.floats(0, 500)), max_size=9)


@settings(max_examples=200)
@given(places, st.floats(5, 30))
def test_words_are_moved_until_none_covers_another(middles, height):
    """It ends, too: sums of heights are rounded, and words that just touched were once moved for ever."""
    widths = [80.0 + 10 * place for place in range(len(middles))]
    heights = spread_apart(middles, widths, height)
    for first in range(len(middles)):
        for second in range(first):
            apart = abs(middles[first][0] - middles[second][0]) >= (widths[first] + widths[second]) / 2
            assert apart or abs(heights[first] - heights[second]) >= height - 1e-5
