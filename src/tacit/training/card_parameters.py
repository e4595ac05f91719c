"""Details that the card of a training shows: how it was done."""

from __future__ import annotations

from tacit.rounding import rounded_up
from tacit.training.average import averaged_steps
from tacit.training.gradients import Checked
from tacit.training.plan import TrainingPlan
from tacit.training.settings import TrainingSettings
from tacit.training.tasks import Task


def card_parameters(
    settings: TrainingSettings, plan: TrainingPlan, task: Task, checked: Checked | None
) -> dict[str, object]:
    """Details for the card. How the gradients were worked out is known once the engine was compared."""
    shown: dict[str, object] = {"model": settings.model, **average_shown(settings, plan)}
    if plan.private:
        shown = {"clipping": settings.clipping, "bound": settings.bound, **shown}
        if settings.public_gradients:
            shown["public gradients"] = settings.public_gradients
        if settings.noise_generator != "secure":
            shown["generator of the noise"] = "that of the graphics card, by request"
    if settings.precision == "bf16":
        shown["precision"] = "layers with 16 bits (bfloat16); weights, norms, clipped sums and noise with 32"
    if checked is not None:
        deviation = rounded_up(checked.deviation, 1)
        shown["gradients"] = f"{checked.engine}, within {deviation} of one example alone"
        if task.constant:
            shown["filled up"] = f"every record to {task.length} word pieces"
    return shown


def average_shown(settings: TrainingSettings, plan: TrainingPlan) -> dict[str, object]:
    """How the saved weights are a mean; nothing where they are those after the last step."""
    count = averaged_steps(settings.average, plan.steps)
    return {"saved weights": f"the mean of those after each of the last {count:,} {plan.words[1]}"} if count else {}
