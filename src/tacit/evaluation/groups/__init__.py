"""Scores by group: who a model serves worse, and who pays for its privacy (Bagdasaryan, Poursaeed & Shmatikov 2019).

A group is what a column of the test rows says (a dialect, a site, an age), or a class. Every number is the score of the
task, worked out on the rows of a group alone, and the same test sets are drawn again for all of them at once:

    interval          percentile bootstrap over rows, or over users whose rows belong together; Wilson's interval where
                      a score is a share of independent rows
    against the rest  the difference to all other rows, its p-value by the normal approximation with the bootstrapped
                      spread, corrected by Holm's method for all groups
    largest gap       best group less worst group. The largest of many differences is large by chance alone, so its
                      interval holds for all pairs at once: with s_ab the bootstrapped spread of the difference of a and
                      b, and c the 95 % quantile over resamples of the maximum over all pairs of |D*_ab - D_ab| / s_ab,
                      all true differences lie in D_ab -+ c s_ab together, so the largest one lies between the largest
                      |D_ab| - c s_ab and the largest |D_ab| + c s_ab (a little wider for small groups: `gaps`)
    paid              score of a model without privacy less score of the private model, on the same rows; the largest
                      difference of two groups is a difference of differences, with the same kind of interval

Groups of few rows are shown and named, but take part in no gap: their spread cannot be estimated.

    measures     what is counted in each row, so that scores of any test set follow from sums
    resampling   the sums of many test sets at once
    gaps         intervals that hold for all pairs, Holm's correction
    report       the section of a report
    wanted       options and their sections
"""

from __future__ import annotations

from tacit.evaluation.groups.grouping import RowGroups, groups_of_column
from tacit.evaluation.groups.report import group_sections
from tacit.evaluation.groups.scores import (
    FEWEST_ROWS,
    FEWEST_USERS,
    Answers,
    GroupReport,
    scores_by_class,
    scores_by_group,
)
from tacit.evaluation.groups.wanted import Reader, WantedGroups, wanted_groups

__all__ = [
    "FEWEST_ROWS",
    "FEWEST_USERS",
    "Answers",
    "GroupReport",
    "Reader",
    "RowGroups",
    "WantedGroups",
    "group_sections",
    "groups_of_column",
    "scores_by_class",
    "scores_by_group",
    "wanted_groups",
]
