"""DP-BART-PR: fewer encoder neurons, so less noise (Igamberdiev 2023, section 6.3.4, Algorithm 1).

    importance of neuron j   sum over i of |W_K[i, j]|, W_K the key projection of the cross-attention in the FIRST
                             decoder layer (in torch's layout, (out, in), column j reads encoder neuron j)
                             other rules, to compare with: the value projection W_V, a later decoder layer, or neurons
                             drawn at random
    each of k stages         prune the neurons below the 25 % quantile of what is left; then train on public text with
                             the pruned columns at 0 and the others clamped
    the end                  after 6 stages, or with the first one that repeats held-out public texts worse than BLEU 95
    rewriting                weights of the last stage with the kept columns of the stage before (the k - 1 trick);
                             the folder of each stage is a model as well, with its own weights and kept columns

On a width of 768 this prunes 192, 336, 444, 525, 586, 632 neurons; stage 5 leaves 182, so n = 20 * 182 = 3,640. The
same columns are 0 for every document and position: they carry nothing and add nothing to the sensitivity.

In place of pruning, `narrowed` puts a linear bottleneck of the same width behind the encoder and trains it together
with the model for as many batches (the rule "bottleneck", which the thesis found worse than the keys).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.documents.autoencoders.base import Autoencoder, load_autoencoder
from tacit.documents.autoencoders.built_in import RECORD_FILE
from tacit.documents.bounds import ClipValue
from tacit.documents.pretraining.corpus import PublicText, declared
from tacit.documents.pretraining.folders import CHECKPOINT
from tacit.errors import BadInputError, BadParameterError, check_choice
from tacit.noise.source import public_generator

if TYPE_CHECKING:
    from tacit.documents.autoencoders.bart import BartAutoencoder
    from tacit.documents.autoencoders.bottleneck import BottleneckAutoencoder
    from tacit.documents.pretraining.loop import OnStep
    from tacit.documents.pretraining.plan import PretrainingPlan

STAGES = 6
QUANTILE = 0.25
LEAST_BLEU = 95.0


def next_kept(importance: NDArray[Any], kept: Sequence[int], quantile: float = QUANTILE) -> tuple[int, ...]:
    """The kept columns without those below the quantile of their importances."""
    if not 0 < quantile < 1:
        raise BadParameterError(
            "impossible-quantile", "the quantile to prune lies between 0 and 1, not {quantile}", quantile=quantile
        )
    columns = np.asarray(kept, dtype=np.int64)
    values = np.asarray(importance, dtype=np.float64)[columns]
    left = columns[values >= np.quantile(values, quantile)]
    return tuple(int(column) for column in left)


PROJECTIONS = {"keys": "k_proj", "values": "v_proj"}
BOTTLENECK = "bottleneck"
"""The rule that prunes nothing: a linear layer as narrow as what the others would leave."""


@dataclass(frozen=True)
class PruningRule:
    """The order in which neurons are pruned.

    by      "keys" or "values": what the decoder's cross-attention reads least; "random": drawn, for comparison
    layer   the decoder layer whose cross-attention is looked at, from 1
    """

    by: str = "keys"
    layer: int = 1

    def __post_init__(self) -> None:
        check_choice(self.by, (*PROJECTIONS, "random"), code="unknown-pruning-rule", what="pruning rule")
        if self.by == "random" and self.layer != 1:
            raise BadParameterError(
                "layer-of-random-pruning",
                "neurons drawn at random belong to no layer: leave out {option.decoder_layer}",
            )

    def importance(self, autoencoder: Autoencoder, seed: int) -> NDArray[np.float64]:
        """A number for each encoder neuron; those with the smallest are pruned."""
        model = getattr(autoencoder, "model", None)
        if autoencoder.kind != "bart" or model is None:
            raise _not_a_bart(autoencoder)
        if self.by == "random":
            return np.asarray(public_generator(seed).random(autoencoder.width))
        layers = model.get_decoder().layers
        if not 1 <= self.layer <= len(layers):
            raise BadParameterError(
                "no-such-decoder-layer",
                "this BART has {layers} decoder layers, and {layer} is none of them: give 1 to {layers}",
                layers=len(layers),
                layer=self.layer,
            )
        weight = getattr(layers[self.layer - 1].encoder_attn, PROJECTIONS[self.by]).weight
        importance: NDArray[np.float64] = weight.detach().cpu().double().abs().sum(dim=0).numpy()
        return importance


FIRST_KEYS = PruningRule()
"""The rule of the thesis, which found it better than all others."""


def prune(
    autoencoder: Autoencoder,
    corpus: PublicText,
    folder: Path,
    plan: PretrainingPlan,
    *,
    C: float,
    stages: int = STAGES,
    quantile: float = QUANTILE,
    least_bleu: float = LEAST_BLEU,
    rule: PruningRule = FIRST_KEYS,
    command: str | None = None,
    resume: bool = False,
    progress: Any = None,
) -> ClipValue:
    """Prune and retrain in place; returns the bound to rewrite with. Stages that are finished are not repeated.

    plan         of the training after each stage; its seed counts up with the stages
    least_bleu   pruning ends with the first stage that repeats held-out texts worse than this, without noise
    command      how the stages were made, for their records
    """
    from tacit.documents.pretraining.loop import train
    from tacit.documents.pretraining.measures import reconstruction_bleu

    corpus = declared(corpus)
    if stages < 2:
        raise _too_few_stages()
    held_out = corpus.split(plan.held_out)[1][:500]
    kept: tuple[int, ...] = tuple(range(autoencoder.width))
    history: list[tuple[int, ...]] = []
    scores: list[float] = []
    rule.importance(autoencoder, plan.seed)  # refused before anything is trained
    corpora, commands = list(autoencoder.record.corpora), list(autoencoder.record.commands)
    for stage in range(1, stages + 1):
        place = folder / f"stage-{stage}"
        if resume and (place / RECORD_FILE).exists():
            kept, score = _finished(autoencoder, place, rule)
        else:
            kept = next_kept(rule.importance(autoencoder, plan.seed + stage), kept, quantile)
            bound = ClipValue(C, kept)
            train(
                autoencoder, corpus, replace(plan, seed=plan.seed + stage), place, bound=bound, resume=resume,
                progress=progress,
            )  # fmt: skip
            score = round(reconstruction_bleu(autoencoder, held_out, bound=bound), 2)
            autoencoder.record.bound = bound.to_dict()
            autoencoder.record.results = {"held_out_bleu_without_noise": score}
            autoencoder.record.corpora = list(dict.fromkeys([*corpora, corpus.name]))
            autoencoder.record.commands = [*commands, f"stage {stage} of: {command or 'a pruning from Python'}"]
            autoencoder.record.pruning = {
                "stage": stage,
                "quantile": quantile,
                "pruned": autoencoder.width - len(kept),
                "rule": "weights and kept columns of this stage",
                "neurons": asdict(rule),
            }
            autoencoder.save_pretrained(place)
            (place / CHECKPOINT).unlink(missing_ok=True)
        history.append(kept)
        scores.append(score)
        if score < least_bleu:
            break
    if len(history) < 2:
        raise BadInputError(
            "pruned-model-repeats-badly",
            "after one stage of pruning held-out texts are repeated with BLEU {score:.1f} only: train longer after "
            "each stage ({option.steps}), or accept less than {least_bleu:g} with {option.least_bleu} and "
            "{option.resume}",
            score=scores[0],
            least_bleu=least_bleu,
        )
    chosen = ClipValue(C, history[-2])
    autoencoder.record.corpora, autoencoder.record.commands = corpora, commands
    autoencoder.record.bound = chosen.to_dict()
    autoencoder.record.pruning = {
        "stages": len(history),
        "quantile": quantile,
        "pruned": [autoencoder.width - len(columns) for columns in history],
        "held_out_bleu": scores,
        "least_bleu": least_bleu,
        "rule": "weights of the last stage, kept columns of the stage before",
        "neurons": asdict(rule),
    }
    return chosen


def width_to_rewrite_with(width: int, stages: int, quantile: float = QUANTILE) -> int:
    """Columns that are left for rewriting after so many stages: those of the stage before the last.

    >>> width_to_rewrite_with(768, 6)
    182
    """
    kept: tuple[int, ...] = tuple(range(width))
    for _ in range(stages - 1):
        kept = next_kept(np.arange(width), kept, quantile)
    return len(kept)


def narrowed(
    bart: BartAutoencoder,
    corpus: PublicText,
    folder: Path,
    plan: PretrainingPlan,
    *,
    C: float,
    stages: int = STAGES,
    quantile: float = QUANTILE,
    resume: bool = False,
    progress: OnStep | None = None,
) -> BottleneckAutoencoder:
    """A copy of the model with a bottleneck as wide as what `stages` of pruning leave, trained for as many batches.

    plan   of the training after one stage, as for `prune`; here all stages are one training
    """
    from tacit.documents.autoencoders.bottleneck import BottleneckAutoencoder
    from tacit.documents.pretraining.loop import train

    if bart.kind != "bart":
        raise _not_a_bart(bart)
    if stages < 2:
        raise _too_few_stages()
    width = width_to_rewrite_with(bart.width, stages, quantile)
    bound = ClipValue(C)
    pruning = {"stages": stages, "quantile": quantile, "width": width, "neurons": {"by": BOTTLENECK}}
    record = replace(bart.record, kind=BOTTLENECK, bound=bound.to_dict(), sigma=None, trained_for=None, pruning=pruning)
    model = BottleneckAutoencoder.of(bart, record, width, plan.seed)
    train(
        model, corpus, replace(plan, steps=plan.steps * stages), folder, bound=bound, resume=resume, progress=progress
    )
    return model


def _not_a_bart(model: Autoencoder) -> BadInputError:
    return BadInputError(
        "wrong-kind-of-model",
        "pruning is defined for a BART, and this model is of the kind '{kind}'",
        kind=model.kind,
    )


def _too_few_stages() -> BadParameterError:
    return BadParameterError(
        "too-few-stages", "pruning needs at least 2 stages: the last one's weights go with the one before"
    )


def _finished(autoencoder: Autoencoder, place: Path, rule: PruningRule) -> tuple[tuple[int, ...], float]:
    """Take the weights of a stage that was finished before; its kept columns and BLEU."""
    done = load_autoencoder(place)
    earlier = PruningRule(**(done.record.pruning or {}).get("neurons", {}))
    if earlier != rule:
        raise BadInputError(
            "another-pruning-rule",
            "'{folder}' was pruned by another rule ({earlier}, layer {layer}): give the same options to go on, or "
            "another folder",
            folder=place.name,
            earlier=earlier.by,
            layer=earlier.layer,
        )
    bound = done.record.trained_bound()
    score = done.record.results.get("held_out_bleu_without_noise")
    if not isinstance(bound, ClipValue) or bound.kept is None or score is None:
        raise BadInputError(
            "not-a-pruning-stage",
            "'{folder}' is no stage of this pruning: start over in another folder",
            folder=place.name,
        )
    autoencoder.module.load_state_dict(done.module.state_dict())
    return bound.kept, float(score)
