"""Attacks on a corpus made by matching, and on the sketch it was made of.

process      how sketches and corpora under audit are made: by the code of the release
planted      the same with a known mistake
artifact     the noise in the released sketch itself
coins        one release with many canaries
corpora      shadow corpora: what did not go through the sketch
membership   shadow releases with and without a target: how well can they be told apart?
"""

from tacit.auditing.synthetic.bounds import Separation
from tacit.auditing.synthetic.membership import ShadowAttack, TargetAttack, membership_attack
from tacit.auditing.synthetic.process import MatchingRelease, release_of
from tacit.auditing.synthetic.rows import AuditedRows
from tacit.auditing.synthetic.targets import Target, usual_targets

__all__ = [
    "AuditedRows",
    "MatchingRelease",
    "Separation",
    "ShadowAttack",
    "Target",
    "TargetAttack",
    "membership_attack",
    "release_of",
    "usual_targets",
]
