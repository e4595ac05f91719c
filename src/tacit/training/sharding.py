"""A model whose weights lie in equal parts in the processes that train it together (FSDP2, `fully_shard` of PyTorch).

Every process keeps its part of each weight, of its clipped sum and of the optimizer's state. The weights of a layer are
put together while it computes and let go again, so that a process works out the exact norm of each of *its own*
examples' gradients alone, as one process would; nothing of a norm has to be added up over processes. The clipped sums
of all are added up and handed out in parts.

    one process    g = sum over all records of clip(g_b) + N(0, (sigma C)^2), for all numbers of the gradient
    process r      the same numbers of the same sum, in the rows that are its own

The noise is one stream for the whole gradient, in the order of its numbers: each process draws all of it from the key
and adds the part that is its own. So every number gets exactly the noise it would get in one process, no part is added
twice or never, and the accounting and the card are those of one process.

All processes have to take part in each pass, because they need each other's weights: a process without records left
goes through a made-up batch, of which nothing is added (`TrainingStep.idle`).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Partial, Shard

from tacit.errors import BadInputError
from tacit.training.gradients import Batch, Engine
from tacit.training.gradients.examples import (
    PerExample,
    UnsupportedModelError,
    trainable,
    without_dropout,
)
from tacit.training.gradients.taps.engine import Taps
from tacit.training.gradients.units import count_of
from tacit.training.team import Team
from tacit.training.user_plans import UserPlan

if TYPE_CHECKING:
    from tacit.training.plan import TrainingPlan
    from tacit.training.settings import TrainingSettings

SHARDED = ("full", "lora")
"""The strategies that train layers of the whole model, so that all of it is in parts."""
CLOSE = 1e-5
"""Relative deviation of norms and sums of a sharded model from those of the whole one, at most."""
State = TypeVar("State")
Numbers = tuple[Mapping[str, Tensor], Mapping[str, Tensor]]
"""Squared norms of examples, and sums of gradients, by parameter."""


@dataclass(frozen=True)
class OwnPart:
    """Which of the numbers of a tensor, row by row, a process holds: from `start`, of `total` in all."""

    start: int
    total: int


@dataclass
class ShardedModel:
    """A model in parts, with what makes it whole again.

    skeleton   the model without its weights, as it was before it was sharded
    made_up    a batch for a process that helps the others
    """

    model: nn.Module
    team: Team
    mesh: DeviceMesh
    skeleton: nn.Module
    made_up: Batch = field(default_factory=dict)
    parts: dict[str, OwnPart] = field(default_factory=dict)

    @classmethod
    def of(cls, model: nn.Module, team: Team, device: torch.device) -> ShardedModel:
        """The model, sharded in place layer by layer."""
        skeleton = _without_weights(model)
        if device.type == "cuda":
            torch.cuda.set_device(device)
        mesh = init_device_mesh(device.type, (team.size,))
        try:
            for layer in _layers(model):
                fully_shard(layer, mesh=mesh)
            fully_shard(model, mesh=mesh)
        except (ValueError, NotImplementedError) as error:
            raise BadInputError(
                "cannot-shard",
                "PyTorch cannot shard this model ({reason}): leave out {option.shard}",
                reason=str(error).split(". ")[0][:200],
            ) from error
        sharded = cls(model, team, mesh, skeleton)
        sharded.parts = {name: sharded._own_part(value) for name, value in trainable(model).items()}
        return sharded

    def _own_part(self, parameter: Tensor) -> OwnPart:
        """Rows are handed out as `torch.chunk` does: as many to each process as fit, what is left to the last ones."""
        rows = -(-parameter.shape[0] // self.team.size)
        first = min(self.team.rank * rows, parameter.shape[0])
        width = parameter.numel() // parameter.shape[0]
        if own_rows(parameter).numel() != min(rows, parameter.shape[0] - first) * width:
            # Two processes would add the same noise to different numbers.
            raise RuntimeError("this version of PyTorch shards weights in another way than noise is handed out")
        return OwnPart(first * width, parameter.numel())

    def follow(self, engine: Taps, probes: Sequence[Batch], whole: Sequence[Numbers]) -> None:
        """Let an engine that has learned the whole model work on its parts, and compare both on made-up batches."""
        self.made_up = probes[0]
        self.attach(engine)
        for batch, (norms, sums) in zip(probes, whole, strict=True):
            own_norms, own_sums = _numbers(engine.run(batch), count_of(batch))
            for expected, own in ((norms, own_norms), (sums, own_sums)):
                for name, value in expected.items():
                    scale = max(float(value.abs().max()), 1e-12)
                    if not float((own[name] - value).abs().max()) <= CLOSE * scale:
                        raise UnsupportedModelError(
                            "sharding-changes-gradients",
                            "the gradients of '{parameter}' are not the same when the model is sharded: leave out "
                            "{option.shard}",
                            parameter=name,
                        )

    def attach(self, engine: Taps) -> None:
        """Tell the engine which parameters it is to follow: those that stand in a layer while it computes."""
        layers = [module for module in self.model.modules() if isinstance(module, FSDPModule)]
        for layer in layers:
            layer.unshard()
        engine.names = {id(parameter): name for name, parameter in trainable(self.model).items()}
        for layer in layers:
            layer.reshard()
        engine.parameters = trainable(self.model)
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")

    def own_sum(self, value: Tensor) -> Tensor:
        """The own rows of the sum of a tensor over all processes."""
        summed = DTensor.from_local(value, self.mesh, [Partial()]).redistribute(placements=[Shard(0)])
        own: Tensor = summed.to_local()
        return own

    def as_gradient(self, own: Tensor, parameter: Tensor) -> Tensor:
        """Own rows as the gradient of a parameter in parts."""
        made: Tensor = DTensor.from_local(
            own, self.mesh, [Shard(0)], run_check=False, shape=parameter.shape, stride=parameter.stride()
        )
        return made

    def whole(self) -> nn.Module:
        """The whole model in the memory of the processor, in the first process; the others help and get one without
        weights."""
        memo: dict[int, object] = {}
        names = dict(self.model.named_parameters())
        for name, empty in self.skeleton.named_parameters():
            value = gathered(names[name].detach(), keep=self.team.first)
            if self.team.first:
                memo[id(empty)] = nn.Parameter(value, requires_grad=empty.requires_grad)
        made = copy.deepcopy(self.skeleton, memo)
        for own, trained in zip(made.buffers(), self.model.buffers(), strict=True):
            own.copy_(trained)
        return made


def check_shardable(settings: TrainingSettings, plan: TrainingPlan, team: Team) -> None:
    """Refuse what is not done with a model in parts, before any work."""
    if team.size == 1:
        raise BadInputError(
            "nobody-to-share-with",
            "a model is sharded among several processes, and this is one alone: start them with torchrun, or leave out "
            "{option.shard}",
        )
    if isinstance(plan, UserPlan):
        raise BadInputError(
            "not-sharded-by-user",
            "a model is sharded for plans that draw records: leave out {option.shard}, or draw examples of users",
        )
    if settings.strategy not in SHARDED or settings.public_gradients or not plan.private:
        raise BadInputError(
            "not-sharded",
            "a model is sharded with the strategies {strategies}, with an epsilon, and without "
            "{option.public_gradients}: choose these, or leave out {option.shard}",
            strategies=" and ".join(SHARDED),
        )


def in_parts(
    model: nn.Module, engine: Engine, probes: Sequence[Batch], team: Team, device: torch.device
) -> ShardedModel:
    """The model of an engine, sharded in place; the engine works on the parts from now on."""
    if not isinstance(engine, Taps):
        raise BadInputError(
            "shard-needs-taps",
            "a model is sharded only with the engine 'taps', and this one takes '{engine}': leave out {option.shard}",
            engine=engine.name,
        )
    with without_dropout(model):
        team.same_weights([*model.parameters(), *model.buffers()])
        whole = [_numbers(engine.run(batch), count_of(batch)) for batch in probes]
        sharded = ShardedModel.of(model, team, device)
        sharded.follow(engine, probes, whole)
    return sharded


def _without_weights(model: nn.Module) -> nn.Module:
    """A copy of a model in which nothing but its weights is missing; weights that are tied stay tied."""
    empty: dict[int, object] = {
        id(parameter): nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=parameter.requires_grad)
        for parameter in model.parameters()
    }
    return copy.deepcopy(model, empty)


def _layers(model: nn.Module) -> list[nn.Module]:
    """The layers of a model: the members of its outermost lists. What is beside them is one more part."""
    layers: list[nn.Module] = []
    for child in model.children():
        if isinstance(child, nn.ModuleList):
            layers += [layer for layer in child if any(True for _ in layer.parameters())]
        else:
            layers += _layers(child)
    return list(dict.fromkeys(layers))


def _numbers(result: PerExample, size: int) -> Numbers:
    """Norms, and the sums with different weights for the examples."""
    norms = {name: value.clone() for name, value in result.squared_norms.items()}
    device = next(iter(norms.values())).device
    factors = torch.linspace(0.25, 1.0, size, device=device)
    return norms, result.weighted_sums(dict.fromkeys(norms, factors))


# Tensors in parts ---------------------------------------------------------------------------------------------------


def own_rows(tensor: Tensor) -> Tensor:
    """The rows of a tensor that this process holds: all of them, if it is not in parts."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def gathered(state: State, *, keep: bool) -> State:
    """The same numbers, whole and in the memory of the processor, however they are nested. All processes take part; a
    process that does not `keep` them has one tensor at a time."""
    if isinstance(state, Tensor):
        whole = state.full_tensor() if isinstance(state, DTensor) else state
        return cast("State", whole.cpu() if keep else torch.empty(0))
    if isinstance(state, dict):
        return cast("State", {name: gathered(value, keep=keep) for name, value in state.items()})
    if isinstance(state, list):
        return cast("State", [gathered(value, keep=keep) for value in state])
    return state


def like(whole: Tensor, parameter: Tensor) -> Tensor:
    """A whole tensor in the same parts as a parameter; as it is, if that is not in parts."""
    if not isinstance(parameter, DTensor):
        return whole
    mesh = parameter.device_mesh
    rows = -(-parameter.shape[0] // mesh.size())
    first = mesh.get_local_rank() * rows
    own = whole[first : first + rows].clone().to(parameter.device)
    made: Tensor = DTensor.from_local(
        own, mesh, parameter.placements, run_check=False, shape=parameter.shape, stride=parameter.stride()
    )
    return made


def optimizer_state_like(state: dict[str, object], parameters: Sequence[Tensor]) -> dict[str, object]:
    """The state of an optimizer with each number that belongs to one of a parameter in the same part as that."""
    kept = cast("dict[int, dict[str, object]]", state["state"])
    in_parts = {
        place: {
            name: like(value, parameters[place])
            if isinstance(value, Tensor) and value.shape == parameters[place].shape and value.dim()
            else value
            for name, value in values.items()
        }
        for place, values in kept.items()
    }
    return {**state, "state": in_parts}
