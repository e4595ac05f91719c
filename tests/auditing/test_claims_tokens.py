"""Mechanisms that draw token by token: the law of every token stays within its share of the promise."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tacit.auditing.claims.documents import exact_tokens
from tacit.auditing.claims.exact import ClaimVerdict
from tacit.auditing.claims.mechanisms import audit_mechanism
from tacit.auditing.claims.settings import ClaimAuditSettings
from tacit.documents.paraphrase import Paraphrase
from tacit.documents.paraphrase_loss import normalized
from tacit.noise.choice import integer_weights
from tests.documents.test_dp_mlm import tiny_mlm
from tests.documents.test_paraphrase import tiny_paraphrase

pytestmark = pytest.mark.filterwarnings("ignore:an epsilon of:tacit.errors.TacitWarning")


@pytest.mark.parametrize("base", ["uniform", "model"])
@pytest.mark.parametrize("epsilon", [5.0, 60.0])
def test_paraphrase_is_not_accused(base, epsilon):
    mechanism = tiny_paraphrase(epsilon=epsilon, base=base, seed=None)
    checked = exact_tokens(mechanism.checks()[0], ClaimAuditSettings())
    assert len(checked) == 2, "the first token, and one after a released token"
    assert all(result.verdict is ClaimVerdict.HOLDS for result in checked)
    assert max(result.tightest for result in checked) > 0.01 * epsilon / mechanism.tokens, "documents make a difference"


@pytest.mark.parametrize("length", ["hidden", "visible"])
def test_dp_mlm_is_not_accused(length):
    checked = exact_tokens(tiny_mlm(epsilon=30.0, length=length, seed=None).checks()[0], ClaimAuditSettings(words="5"))
    assert all(result.verdict is ClaimVerdict.HOLDS for result in checked)


class Unclipped(Paraphrase):
    """Known wrong: a temperature for logits that nobody clipped, as in published code."""

    def weights(self, scores, reference):
        exponents = normalized(scores * 50.0, 1.0)
        return integer_weights(exponents.max(axis=1, keepdims=True) - exponents)


def test_unclipped_logits_are_refuted():
    good = tiny_paraphrase(epsilon=5.0, base="uniform", seed=None)
    wrong = Unclipped(**good.get_params())
    sections = audit_mechanism(wrong)
    assert any(finding.refuted for section in sections for finding in section.findings)
