"""The LSTM encoder-decoder of ADePT (Krishna, Gupta & Dupuy, EACL 2021): one layer, one direction, on both sides.

The latent is the last hidden and cell state of the encoder, two rows of `hidden` numbers, and the first state of the
decoder. The encoder reads the padding first and the text last, so that every text takes the same number of steps and
no mask is needed. Decoding is greedy, or by beam search.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import torch

from tacit.arrays import Ids
from tacit.documents.autoencoders import vocabulary
from tacit.documents.autoencoders.bart import as_text, load_tokenizer, padded, save_tokenizer
from tacit.documents.autoencoders.base import (
    Autoencoder,
    Record,
)
from tacit.documents.autoencoders.weights import load_tensors, save_in_eight_bits, save_tensors
from tacit.errors import BadInputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor, nn

WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "lstm.json"


class LstmNetwork(torch.nn.Module):
    """Embedding, encoder, decoder; the output layer shares the embedding."""

    def __init__(self, pieces: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(pieces, embedding)
        torch.nn.init.normal_(self.embedding.weight, std=embedding**-0.5)
        self.encoder = torch.nn.LSTM(embedding, hidden, batch_first=True)
        self.decoder = torch.nn.LSTM(embedding, hidden, batch_first=True)
        self.output = torch.nn.Linear(hidden, embedding)

    def scores(self, hidden: Tensor) -> Tensor:
        return torch.nn.functional.linear(self.output(hidden), self.embedding.weight)


class LstmAutoencoder(Autoencoder):
    """The ADePT network with its vocabulary. Latent: (2, hidden)."""

    kind: ClassVar[str] = "adept"
    mechanisms: ClassVar[tuple[str, ...]] = ("adept",)

    def __init__(self, network: LstmNetwork, tokenizer: Tokenizer, record: Record, length: int) -> None:
        if record.positions != 2:
            raise BadInputError(
                "damaged-model",
                "the latent of an ADePT has 2 positions (hidden and cell state), not {positions}",
                positions=record.positions,
            )
        self.network = network
        self.tokenizer = tokenizer
        self.record = record
        self._length = length

    @property
    def width(self) -> int:
        return int(self.network.encoder.hidden_size)

    @property
    def length(self) -> int:
        return self._length

    @property
    def module(self) -> nn.Module:
        return self.network

    @property
    def padding_id(self) -> int:
        return self._mark(vocabulary.PADDING)

    def _mark(self, name: str) -> int:
        number = self.tokenizer.token_to_id(name)
        assert number is not None
        return number

    @property
    def pieces(self) -> int:
        return int(self.network.embedding.num_embeddings)

    def ids(self, texts: Sequence[str]) -> Ids:
        return padded(self.tokenizer, texts, self.length, self.padding_id)

    def latents(self, ids: Tensor) -> Tensor:
        # Padding to the front: the last step reads the end mark, whatever the length.
        order = torch.argsort((ids != self.padding_id).long(), dim=1, stable=True)
        _, (hidden, cell) = self.network.encoder(self.network.embedding(ids.gather(1, order)))
        return torch.stack([hidden[0], cell[0]], dim=1)

    def states(self, latents: Tensor, ids: Tensor) -> Tensor:
        start = torch.full_like(ids[:, :1], self._mark(vocabulary.START))
        before = torch.cat([start, ids[:, :-1]], dim=1)
        hidden: Tensor = self.network.decoder(self.network.embedding(before), _state(latents))[0]
        return hidden

    def scores(self, states: Tensor) -> Tensor:
        return self.network.scores(states)

    def generate(self, latents: Tensor, beams: int) -> list[str]:
        if beams > 1:
            return self._search(latents, beams)
        end = self._mark(vocabulary.END)
        state = _state(latents)
        piece = torch.full((len(latents), 1), self._mark(vocabulary.START), device=latents.device)
        written: list[Tensor] = []
        for _ in range(self.length):
            hidden, state = self.network.decoder(self.network.embedding(piece), state)
            piece = self.network.scores(hidden).argmax(dim=-1)
            written.append(piece)
        rows = torch.cat(written, dim=1).tolist()
        return [as_text(self.tokenizer, row[: row.index(end)] if end in row else row) for row in rows]

    def _search(self, latents: Tensor, beams: int) -> list[str]:
        """Beam search: of the last beams the one with the largest mean logarithm of the probabilities of its pieces.

        A beam that has ended stays as it is, so that the search compares it with longer ones.
        """
        texts, end, pieces = len(latents), self._mark(vocabulary.END), self.pieces
        state = _state(latents.repeat_interleave(beams, dim=0))
        piece = torch.full((texts * beams, 1), self._mark(vocabulary.START))
        totals = torch.full((texts, beams), -torch.inf)
        totals[:, 0] = 0.0  # all beams begin alike: one of them is enough
        written = torch.zeros((texts, beams, 0), dtype=torch.long)
        lengths, ended = torch.zeros(texts, beams), torch.zeros(texts, beams, dtype=torch.bool)
        first = torch.arange(texts).unsqueeze(1) * beams
        for _ in range(self.length):
            hidden, state = self.network.decoder(self.network.embedding(piece), state)
            logs = self.network.scores(hidden)[:, 0].log_softmax(dim=-1).view(texts, beams, pieces)
            logs = logs.masked_fill(ended.unsqueeze(2), -torch.inf)
            logs[:, :, end] = logs[:, :, end].masked_fill(ended, 0.0)
            totals, places = (totals.unsqueeze(2) + logs).flatten(1).topk(beams, dim=1)
            parents, chosen = places // pieces, places % pieces
            lengths, ended = lengths.gather(1, parents), ended.gather(1, parents)
            before = written.gather(1, parents.unsqueeze(2).expand(-1, -1, written.shape[2]))
            written = torch.cat([before, chosen.unsqueeze(2)], dim=2)
            lengths += ~ended
            ended |= chosen == end
            if bool(ended.all()):
                break
            rows = (first + parents).flatten()
            state = (state[0][:, rows], state[1][:, rows])
            piece = chosen.view(-1, 1)
        best = (totals / lengths).argmax(dim=1)
        rows_of_best: list[list[int]] = written[torch.arange(texts), best].tolist()
        return [as_text(self.tokenizer, row[: row.index(end)] if end in row else row) for row in rows_of_best]

    # Checkpoints ----------------------------------------------------------------------------------------------

    def save_weights(self, folder: Path) -> None:
        save_tensors(self.network, folder / WEIGHTS_FILE)
        shape = {
            "pieces": self.network.embedding.num_embeddings,
            "embedding": self.network.embedding.embedding_dim,
            "hidden": self.width,
            "length": self.length,
        }
        (folder / CONFIG_FILE).write_text(json.dumps(shape) + "\n", encoding="utf-8")
        save_tokenizer(self.tokenizer, folder)

    def save_small(self, folder: Path) -> None:
        save_in_eight_bits(self.network, folder / WEIGHTS_FILE)

    @classmethod
    def load_weights(cls, folder: str, record: Record) -> Self:
        path = Path(folder)
        try:
            shape = json.loads((path / CONFIG_FILE).read_text(encoding="utf-8"))
            network = LstmNetwork(shape["pieces"], shape["embedding"], shape["hidden"])
            network.load_state_dict({name: value.float() for name, value in load_tensors(path / WEIGHTS_FILE).items()})
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise BadInputError(
                "damaged-model", "the ADePT in '{folder}' is incomplete: copy the whole folder again", folder=path.name
            ) from error
        return cls(network.eval(), load_tokenizer(folder), record, int(shape["length"]))

    @classmethod
    def create(
        cls, tokenizer: Tokenizer, record: Record, *, length: int, embedding: int = 128, hidden: int = 256
    ) -> Self:
        """A new model with random weights, to be trained on public text."""
        return cls(LstmNetwork(tokenizer.get_vocab_size(), embedding, hidden), tokenizer, record, length)


def _state(latents: Tensor) -> tuple[Tensor, Tensor]:
    return latents[:, 0].unsqueeze(0).contiguous(), latents[:, 1].unsqueeze(0).contiguous()
