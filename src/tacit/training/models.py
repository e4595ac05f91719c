"""Models to train: any Hugging Face folder or hub name, MiniLM from its package, or an LSTM from scratch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import nn

from tacit.errors import BadInputError, BadParameterError, check_choice, require
from tacit.training.adapters import restore_adapters
from tacit.training.start import FROM_SCRATCH, is_from_scratch
from tacit.training.tasks import Labeling, Task
from tacit.training.weight_types import check_configured_type, check_weight_types
from tacit.vectors import load_vectors
from tacit.vectors.minilm import minilm_folder

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.txt", "vocab.json")
EMBEDDING = 100
OUR_KINDS = ("tacit-bilstm", "tacit-encoder-lstm", "tacit-encoder-layers", "tacit-mean-pooled")
POOLINGS = ("auto", "mean", "own")
CAUSAL = "AutoModelForCausalLM"
LANGUAGE_TASKS = ("write", "fill", "translate")
COUNT_FROM_PADDING = (
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
    "camembert",
    "longformer",
    "mpnet",
    "data2vec-text",
    "ibert",
)
PRETRAINED = ("ForMaskedLM", "ForPreTraining", "ForCausalLM", "ForConditionalGeneration")


def model_folder(name: str) -> str:
    """ "minilm" as the folder inside its package; any other name as it is."""
    return str(minilm_folder()) if name == "minilm" else name


def load_model(
    task: Task,
    name: str,
    *,
    tokenizer: str | None = None,
    vectors: str | None = None,
    pooling: str = "auto",
    warn: Callable[[str], None] = lambda message: None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A model for the task, with a new head where it needs one, and its tokenizer.

    pooling: what a classifier reads, the mean of all positions ("mean", see pooled.py) or what the model's own head
    reads ("own"); "auto" takes the mean for MiniLM, which was trained for it.

    A model from scratch takes the tokenizer of a folder, by default MiniLM's, and starts the embeddings of whole words
    from public `vectors` if they are named. `warn` is told when weights that the task needs are new.
    """
    transformers = require("transformers", extra="documents", purpose="loading a model")
    # A head that is new is no news here, and bars for saving a file are not worth a line.
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    folder = model_folder(tokenizer or "minilm") if is_from_scratch(name) else model_folder(name)
    if vectors is not None and not is_from_scratch(name):
        raise BadParameterError(
            "vectors-of-a-trained-model",
            "word vectors start a model from scratch, such as bilstm: '{name}' has its own",
            name=name,
        )
    check_configured_type(Path(folder), name)
    know_our_networks(folder)
    words = _tokenizer(name, folder, task, tokenizer)
    if is_from_scratch(name):
        model = _from_scratch(task, name, words)
        if vectors is not None:
            start_from_vectors(model, words, vectors)
    else:
        of_mean = _reads_the_mean(pooling, name, task)
        try:
            model = _mean_pooled(folder, task) if of_mean else _pretrained(folder, name, task, warn)
        except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
            raise _cannot_load(name, folder, task, error) from error
        check_weight_types(model, Path(folder), name)
        _fit_tokenizer(model, words, name)
        if tokenizer is not None:
            _same_pieces(folder, words, name, tokenizer)
    if words.pad_token_id is not None and getattr(model.config, "pad_token_id", None) is None:
        model.config.pad_token_id = words.pad_token_id
    _fit_length(model, task, name, warn)
    _fit_ending(model, words, task, name)
    return model, words


def save_model(model: nn.Module, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Save a model and its tokenizer as transformers does, adapters merged; of another module, its weights alone."""
    # Models with adapters have the one method, those of transformers the other; a module of torch has neither.
    merge = getattr(model, "merge_and_unload", None)
    whole: nn.Module = model if merge is None else merge()
    save = getattr(whole, "save_pretrained", None)
    if save is not None:
        save(folder)
    else:
        torch.save(whole.state_dict(), folder / "model.pt")
    if hasattr(tokenizer, "save_pretrained"):
        tokenizer.save_pretrained(folder)


def longest_input(config: PretrainedConfig) -> int | None:
    """How many word pieces a model can read, if its configuration says so; of an encoder inside one, if it has one."""
    inner = getattr(config, "encoder", None)
    if isinstance(inner, dict):
        from transformers import AutoConfig

        kind = type(AutoConfig.for_model(inner["model_type"]))
        return longest_input(kind.from_dict(inner))
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "max_encoder_position_embeddings")]
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    # RoBERTa and its kin count positions from the id of the filling plus 1.
    offset = (config.pad_token_id or 0) + 1 if config.model_type in COUNT_FROM_PADDING else 0
    return min(known) - offset if known else None


def _fit_length(model: PreTrainedModel, task: Task, name: str, warn: Callable[[str], None]) -> None:
    """Pieces beyond the last position of a model would crash in the middle of a run."""
    most = longest_input(model.config)
    if most is not None and task.length > most:
        warn(f"{name} reads at most {most} word pieces, so a record is cut there and not at {task.length}")
        task.length = most


def _fit_ending(model: PreTrainedModel, words: PreTrainedTokenizerBase, task: Task, name: str) -> None:
    """Classifiers of encoder-decoders (BART, T5) read the state at the end mark, so every text has to have it once."""
    if not getattr(model.config, "is_encoder_decoder", False) or not isinstance(task, Labeling):
        return
    ending = model.config.eos_token_id
    if not isinstance(ending, int) or words.eos_token_id != ending or words.pad_token_id == ending:
        raise BadInputError(
            "no-end-mark",
            "{name} labels a text by its end mark, and the tokenizer has none of its own: give a tokenizer whose "
            "end mark is the model's and is not used to fill texts up",
            name=name,
        )
    task.ending = ending


def _pretrained(folder: str, name: str, task: Task, warn: Callable[[str], None]) -> PreTrainedModel:
    """The weights of a checkpoint. A head for other labels is replaced by a new one, as is one of another task."""
    import transformers

    loader = getattr(transformers, task.model_class)
    settings = Path(folder) / "config.json"
    saved = json.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
    _refuse_quantized(saved, name)
    # Whatever a checkpoint was saved in: norms and sums of gradients are bounded in single precision.
    model: PreTrainedModel
    model, loading = loader.from_pretrained(
        folder,
        dtype=torch.float32,
        ignore_mismatched_sizes=True,
        output_loading_info=True,
        trust_remote_code=False,
        **task.model_options(),
    )
    restore_adapters(model, folder)
    _refuse_not_finite(model, name)
    if task.model_class == CAUSAL:
        check_decoder(model, name)
    others = {key if isinstance(key, str) else key[0] for key in loading["mismatched_keys"]}
    new = {name for name, _ in model.named_parameters()} & ({*loading["missing_keys"]} | others)
    kind = (saved.get("architectures") or ["model"])[0]
    # A classifier that starts from a pre-trained model has a new head: that is no news. A language model has its own.
    if new and (task.name in LANGUAGE_TASKS or ("For" in kind and not kind.endswith(PRETRAINED))):
        warn(
            f"{name} was saved as {kind}: {len(new)} of the weights that '{task.name}' needs are new and start at "
            f"random ({min(new)}); give a model of this task if there is one"
        )
    return model


def _refuse_quantized(settings: dict[str, Any], name: str) -> None:
    """Numbers of some bits have no gradient, and what stands beside them has no known algebra."""
    quantized = settings.get("quantization_config")
    if quantized:
        method = str(quantized.get("quant_method", "some bits")) if isinstance(quantized, dict) else "some bits"
        raise BadInputError(
            "quantized-checkpoint",
            "{name} is quantized ({method}), and such weights cannot be trained: give the checkpoint that it was made "
            "from, in 16 or 32 bits",
            name=name,
            method=method,
        )


def _refuse_not_finite(model: PreTrainedModel, name: str) -> None:
    for weight, parameter in model.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise BadInputError(
                "weights-not-finite",
                "'{weight}' of {name} has numbers that are not finite: fetch the checkpoint again, or give another one",
                weight=weight,
                name=name,
            )


@torch.no_grad()
def check_decoder(model: PreTrainedModel, name: str) -> None:
    """Refuse a causal model whose prediction of a word depends on the words after it: it would learn to copy them."""
    pieces = torch.arange(6).remainder(model.config.vocab_size)[None]
    other = torch.tensor([0, 1, 2, 3, 4, 6]).remainder(model.config.vocab_size)[None]
    was_training = model.training
    model.eval()
    first, second = (model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits for ids in (pieces, other))
    model.train(was_training)
    if not torch.allclose(first[:, :-1], second[:, :-1], rtol=1e-5, atol=1e-6):
        raise BadInputError(
            "not-a-decoder",
            "{name} is no decoder: it sees the words that it is to predict. Give {option.model} a causal language "
            "model, such as a folder of GPT-2 or Llama, or train this one for the task 'fill'",
            name=name,
        )


def _tokenizer(name: str, folder: str, task: Task, tokenizer: str | None) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    place = Path(model_folder(tokenizer) if tokenizer else folder)
    if place.is_dir() and not any((place / file).exists() for file in TOKENIZERS):
        # transformers would make an empty tokenizer without a word.
        what = f"the model folder {name}" if tokenizer is None else f"the folder {tokenizer}"
        raise BadInputError("no-tokenizer", "{model} has no tokenizer: save one there with save_pretrained", model=what)
    try:
        words: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(str(place), trust_remote_code=False)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise _cannot_load(tokenizer or name, str(place), task, error) from error
    if words.pad_token_id is None:
        words.pad_token = words.eos_token or words.unk_token
    if words.pad_token_id is None:
        raise BadInputError(
            "no-padding-token",
            "the tokenizer of {name} has no token to fill texts up with, and no end mark or unknown word in its place: "
            "set its pad_token to one of its pieces and save it there",
            name=tokenizer or name,
        )
    return words


def know_our_networks(folder: str) -> None:
    """transformers finds our own kinds of models once they are imported, and then runs no code of the folder."""
    settings = Path(folder) / "config.json"
    if settings.is_file() and json.loads(settings.read_text(encoding="utf-8")).get("model_type") in OUR_KINDS:
        import tacit.training.all_layers
        import tacit.training.networks
        import tacit.training.pooled  # noqa: F401


def _reads_the_mean(pooling: str, name: str, task: Task) -> bool:
    check_choice(pooling, POOLINGS, code="unknown-pooling", what="pooling")
    of_texts = task.model_class == "AutoModelForSequenceClassification"
    if pooling == "mean" and not of_texts:
        raise BadParameterError(
            "pooling-of-positions", "only a text as a whole has a mean: '{task}' reads every position", task=task.name
        )
    return of_texts and (pooling == "mean" or (pooling == "auto" and name == "minilm"))


def _mean_pooled(folder: str, task: Task) -> PreTrainedModel:
    from tacit.training.pooled import mean_pooled

    return mean_pooled(folder, task.model_options())


def _fit_tokenizer(model: PreTrainedModel, words: PreTrainedTokenizerBase, name: str) -> None:
    """Pieces that the model has no vector for would crash in the middle of a run."""
    try:
        table = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        return
    if isinstance(table, nn.Embedding) and len(words) > table.num_embeddings:
        raise BadInputError(
            "too-many-pieces",
            "the tokenizer has {pieces:,} pieces and {name} has vectors for {vectors:,}: take the tokenizer of the "
            "model, or a model from scratch ({option.model[bilstm]})",
            pieces=len(words),
            name=name,
            vectors=table.num_embeddings,
        )


def _same_pieces(folder: str, words: PreTrainedTokenizerBase, name: str, tokenizer: str) -> None:
    """The vectors of a pre-trained model belong to its own pieces: others would be read as if they were those."""
    from transformers import AutoTokenizer

    if not any((Path(folder) / file).exists() for file in TOKENIZERS):
        return
    if AutoTokenizer.from_pretrained(folder, trust_remote_code=False).get_vocab() != words.get_vocab():
        raise BadInputError(
            "other-pieces",
            "{name} was trained with other pieces than those of {tokenizer}: leave {option.tokenizer} out, or train a "
            "model from scratch ({option.model[bilstm]})",
            name=name,
            tokenizer=tokenizer,
        )


# From scratch -------------------------------------------------------------------------------------------------------


def _from_scratch(task: Task, name: str, words: PreTrainedTokenizerBase) -> PreTrainedModel:
    from tacit.training.networks import HEADS, BiLstmConfig

    if task.model_class not in HEADS:
        raise BadParameterError(
            "model-of-other-tasks",
            "'{name}' classifies, tags and answers; for '{task}' name another {option.model}",
            name=name,
            task=task.name,
        )
    match = FROM_SCRATCH.fullmatch(name)
    assert match is not None
    layers, hidden = (int(match[1]), int(match[2])) if match[1] else (1, 128)
    if layers < 1 or hidden < 1:
        raise BadParameterError(
            "no-layers", "'{name}' has no layers: write layers x width, for example bilstm-2x128", name=name
        )
    config = BiLstmConfig(
        vocab_size=len(words), embedding=EMBEDDING, hidden=hidden, layers=layers, pad_token_id=words.pad_token_id,
        **task.model_options(),
    )  # fmt: skip
    model = HEADS[task.model_class][0](config)
    # Its random weights are not worth keeping: see `apply_strategy`.
    model.__dict__["from_scratch"] = True
    return model


@torch.no_grad()
def start_from_vectors(model: PreTrainedModel, words: PreTrainedTokenizerBase, vectors: str) -> int:
    """Put public word vectors where a piece is a whole word; returns how many. The vectors are scaled to the spread of
    the random ones, and cut or filled up to their width."""
    table = load_vectors(vectors)
    place = {word: i for i, word in enumerate(table.words)}
    weight = model.get_input_embeddings().weight
    assert isinstance(weight, torch.Tensor)
    pieces = dict(words.get_vocab())
    rows = {i: place[plain] for piece, i in pieces.items() if (plain := piece.lstrip("Ġ▁").lower()) in place}
    if not rows:
        raise BadInputError(
            "no-piece-is-a-word",
            "none of the {pieces:,} pieces of this tokenizer is a word of the vectors '{vectors}'",
            pieces=len(pieces),
            vectors=vectors,
        )
    width = min(weight.shape[1], table.dimension)
    known = torch.from_numpy(np.asarray(table.vectors[list(rows.values())], dtype=np.float32)[:, :width])
    known = known * (weight.std() / known.std())
    weight[torch.tensor(list(rows)), :width] = known.to(weight.dtype)
    return len(rows)


def _cannot_load(name: str, folder: str, task: Task, error: Exception) -> BadInputError:
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if Path(folder).is_dir():
        return BadInputError(
            "unreadable-model",
            "the model folder {name} cannot be used for the task '{task}': {reason}",
            name=name,
            task=task.name,
            reason=first,
        )
    offline = " (the hub is switched off by HF_HUB_OFFLINE)" if os.environ.get("HF_HUB_OFFLINE") else ""
    return BadInputError(
        "no-such-model",
        "there is no folder {name}, and it could not be fetched from the model hub{offline}: give a local folder",
        name=name,
        offline=offline,
    )
