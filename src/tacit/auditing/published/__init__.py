"""Published forms of private methods whose promise does not hold, each a small function that returns the promise and
what the form really spends, worked out exactly on its smallest example.

`docs/literature.md` is made from them (`.ci/literature_page.py`), the tests check that every promise is refuted, and
`tacit mechanisms` prints them beside the paper. Nothing here can release anything.
"""
