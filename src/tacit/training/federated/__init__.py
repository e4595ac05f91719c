"""Training for users: the promise is made to a person, whatever number of rows they have.

users    which rows belong to whom
local    what one user's device would do: a few steps of SGD from the current weights
visits   the plan of DP-FTRL: users in a fixed order, correlated noise, no amplification claimed
         (the noise itself, round by round, is `tacit.training.correlated_noise`)
integers updates as whole numbers with Skellam noise, and their accounting; integer_round: a round of them
round    one round on the server: clip the updates, add them up, add noise
run      the whole simulation: checkpoints, card, model folder

DP-FedAvg uses the plan of ordinary private training (`tacit.training.plan.TrainingPlan`), with users in
place of records.
"""

from tacit.training.federated.local import LocalTraining
from tacit.training.federated.run import FederatedRun
from tacit.training.federated.visits import VisitPlan, factorization_named
from tacit.training.users import Users, group_by_user

__all__ = ["FederatedRun", "LocalTraining", "Users", "VisitPlan", "factorization_named", "group_by_user"]
