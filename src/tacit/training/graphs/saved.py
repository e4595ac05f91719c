"""A trained graph model as a folder, and predictions from it.

graph.json          method, names of the labels, how features are made
weights.npz         the weights: covered by the guarantee, may be shown
card.json           the guarantee of the weights

Beside it, in its private folder (`tacit.training.private_folder`):

evidence.npz        (messages) what each node received, with noise. It is covered for every node but the one that
                    received it, so it is kept. Predictions read it instead of the links.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.card import Card
from tacit.errors import BadInputError
from tacit.guarantee import Guarantee
from tacit.training.graphs.graph import Features, Graph
from tacit.training.graphs.messages import NodeModel
from tacit.training.private_folder import private_folder, refuse_private_part

if TYPE_CHECKING:
    from torch import nn

SETTINGS, WEIGHTS, CARD = "graph.json", "weights.npz", "card.json"
EVIDENCE = "evidence.npz"


@dataclass(frozen=True)
class SavedModel:
    """A model from its folder. `columns`: what the columns of the nodes were called."""

    method: str
    classes: tuple[str, ...]
    features: Features
    columns: dict[str, str]
    arrays: dict[str, NDArray[np.floating]]
    evidence: dict[str, NDArray[np.float64]]
    guarantee: Guarantee

    @property
    def needs_links(self) -> bool:
        return self.method in ("subgraphs", "as-published")


def check_folder(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInputError("folder-not-empty", "{folder} is not empty: give another folder", folder=folder)
    refuse_private_part(folder)


def evidence_file(folder: Path) -> Path:
    """The file of what the nodes received; earlier versions kept it inside of the folder."""
    inside = folder / "private" / EVIDENCE
    return inside if inside.exists() else private_folder(folder) / EVIDENCE


def save_nodes(
    folder: Path,
    graph: Graph,
    model: NodeModel,
    guarantee: Guarantee,
    method: str,
    columns: dict[str, str],
    configuration: Mapping[str, object] | None = None,
) -> None:
    """Weights and card to the folder; what the nodes received to its private part."""
    _save(folder, graph, {"weights": model.weights}, guarantee, method, columns, configuration or {})
    if model.evidence.any():
        place = evidence_file(folder)
        place.parent.mkdir(mode=0o700, exist_ok=True)
        known_nodes = np.flatnonzero(model.evidence.any(axis=1))
        np.savez(place, names=np.array(graph.names)[known_nodes], evidence=model.evidence[known_nodes])


def save_network(
    folder: Path,
    graph: Graph,
    network: nn.Module,
    guarantee: Guarantee,
    columns: dict[str, str],
    configuration: Mapping[str, object] | None = None,
    *,
    method: str = "subgraphs",
) -> None:
    """The weights of a graph convolution, by the names they have in torch-geometric."""
    arrays = {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}
    _save(folder, graph, arrays, guarantee, method, columns, configuration or {})


def load_saved(folder: Path) -> SavedModel:
    if not (folder / SETTINGS).is_file():
        raise BadInputError(
            "no-such-model", "{folder} holds no graph model: train one with 'tacit graph train'", folder=folder
        )
    try:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        vocabulary = tuple(settings["features"].pop("vocabulary"))
        features = Features(**settings["features"], vocabulary=vocabulary)
        with np.load(folder / WEIGHTS, allow_pickle=False) as file:
            arrays = dict(file)
        evidence: dict[str, NDArray[np.float64]] = {}
        if evidence_file(folder).exists():
            with np.load(evidence_file(folder), allow_pickle=False) as file:
                evidence = dict(zip(file["names"].tolist(), file["evidence"], strict=True))
        card = Card.of_file(folder / CARD)
        return SavedModel(
            settings["method"],
            tuple(settings["classes"]),
            features,
            settings["columns"],
            arrays,
            evidence,
            card.guarantee,
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BadInputError(
            "damaged-model",
            "the graph model in {folder} is damaged ({error}): train it again",
            folder=folder,
            error=type(error).__name__,
        ) from error


def predict_saved(model: SavedModel, graph: Graph) -> list[str]:
    """A label for each node of the graph. A node that was not there in training is predicted from its words alone."""
    if graph.features.shape[1] != model.features.size:
        raise BadInputError(
            "wrong-number-of-features",
            "the nodes have {features:,} features, the model knows {expected:,}: make them in the same way",
            features=graph.features.shape[1],
            expected=model.features.size,
        )
    if model.needs_links:
        import torch

        from tacit.training.graphs.gcn import GCN, predict
        from tacit.training.graphs.published import as_zeros_and_ones

        hidden = len(model.arrays["conv1.bias"])
        network = GCN(model.features.size, len(model.classes), hidden)
        network.load_state_dict({name: torch.from_numpy(value) for name, value in model.arrays.items()})
        best = predict(network, as_zeros_and_ones(graph) if model.method == "as-published" else graph).argmax(1)
    else:
        nothing = np.zeros(len(model.classes))
        evidence = np.array([model.evidence.get(name, nothing) for name in graph.names])
        weights = model.arrays["weights"].astype(np.float64, copy=False)
        best = NodeModel(weights, evidence).logits(graph.features, evidence).argmax(1)
    return [model.classes[i] for i in best]


def prediction_guarantee(model: SavedModel) -> Guarantee:
    """The guarantee of a file of predictions."""
    if model.needs_links and model.guarantee.is_private:
        return model.guarantee.voided(
            "each prediction reads the words and links of the neighbors, which no noise covers; the weights of the "
            "model keep their own guarantee"
        )
    return model.guarantee


def _save(
    folder: Path,
    graph: Graph,
    arrays: dict[str, NDArray[np.floating]],
    guarantee: Guarantee,
    method: str,
    columns: dict[str, str],
    configuration: Mapping[str, object],
) -> None:
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "method": method,
        "classes": list(graph.classes),
        "features": asdict(graph.made_by),
        "columns": columns,
    }
    np.savez(folder / WEIGHTS, **arrays)  # type: ignore[arg-type]
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / CARD).write_text(Card(guarantee, configuration=configuration).to_json(), encoding="utf-8")
