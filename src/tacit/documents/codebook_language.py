"""Decoding released cells with a language model: public post-processing, so it costs no budget.

The model is shown public sentences of the released cell, one on each line, and writes one more line. It sees the cell
and nothing else of the document, so the guarantee of the cell holds for the text, whatever the model does; a model that
was trained on private text would bring its own leaks, so use a public one.
"""

from __future__ import annotations

from collections.abc import Sequence

from tacit.documents.language_models import CausalModel, load_causal
from tacit.errors import require
from tacit.noise.source import Source

LONGEST_PROMPT = 512
LONGEST_LINE = 40
"""Word pieces of a generated line at most."""


class LanguageDecoder:
    """A causal language model that continues a list of sentences.

    name   a folder, a hub name, or "smollm2"
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._loaded: CausalModel | None = None

    def prepare(self) -> CausalModel:
        if self._loaded is None:
            loaded = load_causal(self.name, "continuing a list of sentences")
            loaded.provenance()
            self._loaded = loaded
        return self._loaded

    def continued(self, examples: Sequence[Sequence[str]], batch_size: int, source: Source) -> list[str]:
        """A new line for each list of example sentences; an example itself where the model writes nothing."""
        torch = require("torch", extra="documents", purpose="decoding with a language model")
        loaded = self.prepare()
        tokenizer, model = loaded.tokenizer, loaded.model
        released: list[str] = []
        for start in range(0, len(examples), batch_size):
            batch = examples[start : start + batch_size]
            prompts = [
                loaded.plain("".join(f"- {line}\n" for line in lines) + "-")[-LONGEST_PROMPT:] for lines in batch
            ]
            width = max(len(ids) for ids in prompts)
            inputs = torch.tensor([[loaded.pad] * (width - len(ids)) + list(ids) for ids in prompts])
            mask = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts])
            seed = int(source.generator.integers(0, 1 << 62))
            with torch.random.fork_rng(devices=[]), torch.inference_mode():
                torch.manual_seed(seed)
                output = model.generate(
                    input_ids=inputs.to(loaded.device),
                    attention_mask=mask.to(loaded.device),
                    max_new_tokens=LONGEST_LINE,
                    do_sample=True,
                    temperature=0.8,
                    top_p=0.95,
                    top_k=0,
                    stop_strings=["\n"],
                    tokenizer=tokenizer,
                    pad_token_id=loaded.pad,
                )
            lines_written = tokenizer.batch_decode(output[:, width:], skip_special_tokens=True)
            released += [
                " ".join(written.strip().partition("\n")[0].split()) or lines[0]
                for written, lines in zip(lines_written, batch, strict=True)
            ]
        return released
