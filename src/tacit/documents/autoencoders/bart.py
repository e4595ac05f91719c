"""Any Hugging Face BART as an autoencoder: the latent is the output of its encoder, (positions, width) per text.

Lewis et al., "BART: denoising sequence-to-sequence pre-training" (ACL 2020). Decoding is batched beam search over the
noisy latents, with an all-ones mask and a fixed largest length.
"""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import torch

from tacit.arrays import Ids
from tacit.documents.autoencoders import vocabulary
from tacit.documents.autoencoders.base import Autoencoder, Record, readable
from tacit.documents.autoencoders.built_in import RECORD_FILE
from tacit.errors import BadInputError, require

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedModel

PURPOSE = "a BART model"


class BartAutoencoder(Autoencoder):
    """A BART with its vocabulary."""

    kind: ClassVar[str] = "bart"
    mechanisms: ClassVar[tuple[str, ...]] = ("dp-bart",)

    def __init__(self, model: PreTrainedModel, tokenizer: Any, record: Record) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.record = record
        largest = int(model.config.max_position_embeddings)
        if not 2 <= record.positions <= largest:
            raise BadInputError(
                "impossible-length",
                "this BART reads 2 to {largest} pieces, not {positions}: choose a length there",
                largest=largest,
                positions=record.positions,
            )

    @property
    def width(self) -> int:
        return int(self.model.config.d_model)

    @property
    def length(self) -> int:
        return self.record.positions

    @property
    def module(self) -> nn.Module:
        return self.model

    @property
    def padding_id(self) -> int:
        return int(self.model.config.pad_token_id)

    @property
    def pieces(self) -> int:
        return int(self.model.config.vocab_size)

    def ids(self, texts: Sequence[str]) -> Ids:
        return padded(self.tokenizer, texts, self.length, self.padding_id)

    def latents(self, ids: Tensor) -> Tensor:
        mask = (ids != self.padding_id).long() if self.record.encoder_mask else torch.ones_like(ids)
        latents: Tensor = self.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        return latents

    def memory(self, latents: Tensor) -> Tensor:
        """The states that the decoder attends to: the latent itself."""
        return latents

    def states(self, latents: Tensor, ids: Tensor) -> Tensor:
        memory = self.memory(latents)
        start = torch.full_like(ids[:, :1], int(self.model.config.decoder_start_token_id))
        states: Tensor = self.model.get_decoder()(
            input_ids=torch.cat([start, ids[:, :-1]], dim=1),
            encoder_hidden_states=memory,
            encoder_attention_mask=torch.ones(memory.shape[:2], dtype=torch.long, device=memory.device),
            use_cache=False,
        ).last_hidden_state
        return states

    def scores(self, states: Tensor) -> Tensor:
        scores: Tensor = self.model.lm_head(states) + self.model.final_logits_bias
        return scores

    def generate(self, latents: Tensor, beams: int) -> list[str]:
        outputs = require("transformers.modeling_outputs", extra="documents", purpose=PURPOSE)
        memory = self.memory(latents)
        options = {"early_stopping": True} if beams > 1 else {}
        write = cast("Callable[..., Tensor]", self.model.generate)
        rows = write(
            encoder_outputs=outputs.BaseModelOutput(last_hidden_state=memory),
            attention_mask=torch.ones(memory.shape[:2], dtype=torch.long, device=memory.device),
            num_beams=beams,
            do_sample=False,
            max_length=self.length + 1,
            min_length=0,
            **options,
        )
        return [as_text(self.tokenizer, row) for row in rows.tolist()]

    # Checkpoints ----------------------------------------------------------------------------------------------

    def save_weights(self, folder: Path) -> None:
        with quiet():
            self.model.save_pretrained(folder)
        save_tokenizer(self.tokenizer, folder)

    @classmethod
    def load_weights(cls, folder: str, record: Record) -> Self:
        model = load_bart(folder)
        return cls(model, load_tokenizer(folder), record)

    @classmethod
    def create(
        cls,
        tokenizer: Any,
        record: Record,
        *,
        width: int = 192,
        layers: int = 2,
        heads: int = 4,
        feed_forward: int = 384,
        positions: int | None = None,
    ) -> Self:
        """A new model with random weights, to be trained on public text; `tokenizer` from `train_vocabulary`."""
        transformers = require("transformers", extra="documents", purpose=PURPOSE)
        config = transformers.BartConfig(
            vocab_size=tokenizer.get_vocab_size(),
            d_model=width,
            encoder_layers=layers,
            decoder_layers=layers,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_ffn_dim=feed_forward,
            decoder_ffn_dim=feed_forward,
            max_position_embeddings=positions or record.positions + 1,
            dropout=0.0,
            attention_dropout=0.0,
            activation_dropout=0.0,
            pad_token_id=tokenizer.token_to_id(vocabulary.PADDING),
            bos_token_id=tokenizer.token_to_id(vocabulary.START),
            eos_token_id=tokenizer.token_to_id(vocabulary.END),
            decoder_start_token_id=tokenizer.token_to_id(vocabulary.START),
            forced_eos_token_id=None,
            init_std=width**-0.5 / 2,
        )
        return cls(transformers.BartForConditionalGeneration(config), tokenizer, record)

    def lengthened(self, positions: int) -> Self:
        """The same weights for longer texts: the position vectors that are missing are new, all others are kept."""
        if positions < self.positions:
            raise BadInputError(
                "impossible-length",
                "this model reads {positions} pieces: give that length or a larger one",
                positions=self.positions,
            )
        transformers = require("transformers", extra="documents", purpose=PURPOSE)
        config = copy.deepcopy(self.model.config)
        config.max_position_embeddings = max(int(config.max_position_embeddings), positions + 1)
        longer = transformers.BartForConditionalGeneration(config)
        state = self.model.state_dict()
        for name, fresh in longer.state_dict().items():
            if name.endswith("embed_positions.weight"):
                known = state[name]
                fresh = fresh / fresh.std() * known.std()
                fresh[: len(known)] = known
                state[name] = fresh
        longer.load_state_dict(state)
        return type(self)(longer, self.tokenizer, replace(self.record, positions=positions))


# Pieces -----------------------------------------------------------------------------------------------------------
# Own vocabularies are `tokenizers.Tokenizer` objects, those of the hub `transformers` tokenizers.


def padded(tokenizer: Any, texts: Sequence[str], length: int, padding_id: int) -> Ids:
    """Ids of shape (texts, length): pieces, end mark, padding."""
    read = [readable(text, length) for text in texts]
    result = np.full((len(read), length), padding_id, dtype=np.int64)
    for row, pieces in enumerate(_pieces(tokenizer, read, length)):
        result[row, : len(pieces)] = pieces
    return result


def _pieces(tokenizer: Any, texts: list[str], length: int) -> Iterator[list[int]]:
    if hasattr(tokenizer, "encode_batch"):
        end = tokenizer.token_to_id(vocabulary.END)
        for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False):
            yield [*encoding.ids[: length - 1], end]
    else:
        yield from tokenizer(texts, truncation=True, max_length=length)["input_ids"]


def as_text(tokenizer: Any, ids: list[int]) -> str:
    text: str = tokenizer.decode(ids, skip_special_tokens=True)
    return text.strip()


# Files ------------------------------------------------------------------------------------------------------------


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    if hasattr(tokenizer, "encode_batch"):
        tokenizer.save(str(folder / vocabulary.FILE))
    else:
        tokenizer.save_pretrained(folder)


def load_tokenizer(folder: str) -> Any:
    if (Path(folder) / RECORD_FILE).exists() and not (Path(folder) / "tokenizer_config.json").exists():
        return vocabulary.load_vocabulary(Path(folder))
    transformers = require("transformers", extra="documents", purpose=PURPOSE)
    try:
        with quiet():
            return transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except (OSError, ValueError, ImportError) as error:
        raise BadInputError(
            "unreadable-tokenizer",
            "the vocabulary of '{name}' cannot be loaded: copy its tokenizer files into the folder",
            name=Path(folder).name,
        ) from error


def load_bart(folder: str) -> PreTrainedModel:
    """A complete BART in single precision, or a sentence that says what is wrong."""
    transformers = require("transformers", extra="documents", purpose=PURPOSE)
    shown = Path(folder).name if Path(folder).is_dir() else folder
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise BadInputError(
            "no-such-model",
            "there is no model '{name}': it is neither built in nor a folder with a config.json, and the hub cannot "
            "be reached or does not have it. Give the folder of a BART, or download it first",
            name=shown,
        ) from error
    if config.model_type != "bart":
        raise BadInputError(
            "wrong-kind-of-model",
            "'{name}' is a model of the type {model_type}: DP-BART needs a BART",
            name=shown,
            model_type=config.model_type,
        )
    try:
        with quiet():
            model, report = transformers.BartForConditionalGeneration.from_pretrained(
                folder, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
            )
    except Exception as error:  # safetensors, pickle and shape errors have no common class
        raise BadInputError(
            "unreadable-model",
            "the weights of '{name}' are missing or damaged: copy the whole folder again (config.json, "
            "model.safetensors, tokenizer files)",
            name=shown,
        ) from error
    missing = sorted(key for key in report["missing_keys"] if not key.endswith("final_logits_bias"))
    if missing or report.get("mismatched_keys"):
        # Hugging Face would fill the gaps with random numbers.
        raise BadInputError(
            "incomplete-weights",
            "'{name}' lacks {missing:,} of the weights of a BART with a language-model head: it is incomplete, or a "
            "BART for another task",
            name=shown,
            missing=max(1, len(missing)),
        )
    model.generation_config = transformers.GenerationConfig(
        pad_token_id=config.pad_token_id,
        bos_token_id=config.bos_token_id,
        eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id,
    )
    bart: PreTrainedModel = model.eval()
    return bart


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and loading reports of the library on the user's terminal."""
    messages = require("transformers.utils.logging", extra="documents", purpose=PURPOSE)
    level, bars = messages.get_verbosity(), messages.is_progress_bar_enabled()
    messages.set_verbosity(logging.CRITICAL)
    messages.disable_progress_bar()
    try:
        yield
    finally:
        messages.set_verbosity(level)
        if bars:
            messages.enable_progress_bar()
