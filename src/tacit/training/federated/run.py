"""A simulation of federated training, from the first round to the saved model.

Everything that `tacit.training.run` promises holds here: the users, the local randomness and the noise of a round are
functions of the key and the number of the round; a resumed run repeats unfinished rounds exactly; the key is destroyed
when the run is finished; the folder is a model that transformers loads, with its card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import torch
from torch import nn
from torch.optim import Optimizer

from tacit.devices import device_of, moved
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee, Unit
from tacit.training.card_parameters import average_shown
from tacit.training.clipping import make_clipping
from tacit.training.federated.integer_round import IntegerRound
from tacit.training.federated.integers import SkellamPlan
from tacit.training.federated.local import LocalTraining
from tacit.training.federated.round import FederatedRound
from tacit.training.federated.visits import VisitPlan
from tacit.training.gradients import Batch, UnsupportedModelError
from tacit.training.gradients.examples import trainable
from tacit.training.optimizers import optimizer_for
from tacit.training.origin import with_code_of_plugin
from tacit.training.run import TrainingRun
from tacit.training.users import Users

ONE_NAME = "a person behind several user names: each name is protected on its own"
TRUSTED_SERVER = "the server is trusted: it sees the updates of single users before the noise is added"


@dataclass
class FederatedRun(TrainingRun):
    """A federated training: `rows` belong to `users`; `plan` counts users.

    The plan is a `TrainingPlan` for DP-FedAvg and a `VisitPlan` for DP-FTRL. The optimizer of `settings` is that of the
    server; `momentum` is its momentum, if it is SGD.
    """

    users: Users = field(kw_only=True)
    local: LocalTraining = field(kw_only=True, default_factory=LocalTraining)
    momentum: float = field(kw_only=True, default=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.momentum < 1.0:
            raise BadParameterError(
                "impossible-momentum",
                "the momentum of the server lies between 0 and 1, not {momentum:g}",
                momentum=self.momentum,
            )
        if self.plan.records != len(self.users):
            raise BadInputError(
                "plan-of-other-records",
                "the plan is for {records:,} users, but there are {users:,}: make the plan anew",
                records=self.plan.records,
                users=len(self.users),
            )
        if self.plan.private and self.plan.unit is not Unit.USER:
            raise BadInputError(
                "plan-of-other-units", "the plan of a federated run must count users: give it unit=Unit.USER"
            )

    @property
    def algorithm(self) -> str:
        if isinstance(self.plan, SkellamPlan):
            return "FedAvg in whole numbers, users in a fixed order"
        return "FTRL" if isinstance(self.plan, VisitPlan) else "FedAvg"

    def _lay_out(self) -> None:
        """Leave the layout as the tokenizer says: an update is a function of one user's rows, so no filling depends on
        another user."""

    def _step(self) -> FederatedRound:
        _refuse_mixing(self.model)
        encoded = self._encoded().firsts
        device = device_of(self.model)

        def collate(records: Sequence[int]) -> Batch:
            return moved(self.task.collate([encoded[i] for i in records], self.tokenizer), device)

        count = len(trainable(self.model))
        clipping = make_clipping(self.settings.clipping, self.settings.bound, count) if self.plan.private else None
        kind = IntegerRound if isinstance(self.plan, SkellamPlan) else FederatedRound
        self.round = kind(
            self.plan,
            collate,
            warn=self.warn,
            team=self.team,
            model=self.model,
            loss=self.task.loss,
            users=self.users,
            local=self.local,
            clipping=clipping,
        )
        return self.round

    def _optimizer(self, parameters: list[nn.Parameter]) -> Optimizer:
        chosen = self.settings
        return optimizer_for(parameters, chosen.optimizer, chosen.learning_rate, chosen.weight_decay, self.momentum)

    def _fingerprint(self) -> dict[str, object]:
        federation = {"users": self.users.fingerprint(), "local": asdict(self.local), "momentum": self.momentum}
        return {**super()._fingerprint(), "federation": federation}

    def _own(self, parameters: Mapping[str, object]) -> Guarantee:
        private = self.plan.private
        own = self.plan.guarantee(
            steps=self.plan.steps,
            secure=self.seed is None,
            what=f"{'DP-' if private else ''}{self.algorithm} ({self.task.name}, strategy {self.settings.strategy})",
            parameters=parameters,
            trials=self.trials,
        )
        if private:
            own = own.also_not_covered(ONE_NAME).also_assuming(TRUSTED_SERVER)
        return with_code_of_plugin(own, self.task.name, type(self.task))

    def _parameters(self) -> dict[str, object]:
        private = self.plan.private
        return {
            **({"clipping": self.settings.clipping, "bound": self.settings.bound} if private else {}),
            "planned cohort": self.plan.batch,
            "local training": self.local.label,
            "server": self.settings.optimizer + (f", momentum {self.momentum:g}" if self.momentum else ""),
            "model": self.settings.model,
            **average_shown(self.settings, self.plan),
        }


def _refuse_mixing(model: torch.nn.Module) -> None:
    """The running means of a batch normalization would leave the users without noise."""
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            raise UnsupportedModelError(
                "model-mixes-examples",
                "'{name}' is a batch normalization, whose running means no update carries: replace it by a group or "
                "layer normalization",
                name=name,
            )
