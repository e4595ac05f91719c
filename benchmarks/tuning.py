"""What a search for settings costs: the noise of each trial at equal epsilon of all that is released.

python benchmarks/tuning.py

Prints the noise multiplier of one run, of trials whose budgets add up, and of a secret number of trials, for a plan
like that of SST-2 (67,349 records, batches of 256, 3 passes), and the epsilon that the best of the secret trials would
have if one printed that of its run alone, which is no promise. A minute of one core.
"""

from __future__ import annotations

from tacit.account.delta import automatic_delta
from tacit.account.selection import Trial, TrialLaw, search_noise_multiplier
from tacit.account.sgd import sgd_epsilon, sgd_noise_multiplier
from tacit.errors import BadParameterError
from tacit.training.plan import steps_of

RECORDS, BATCH, EPOCHS = 67_349, 256, 3.0
MEANS = (3, 10, 30, 100)


def main() -> None:
    rate, steps, delta = BATCH / RECORDS, steps_of(EPOCHS, RECORDS, BATCH), automatic_delta(RECORDS)
    for epsilon in (1.0, 3.0, 8.0):
        print(f"epsilon {epsilon:g}, delta {delta:g}, {steps} steps at the rate {rate:.4f}")
        single = sgd_noise_multiplier(epsilon=epsilon, sampling_rate=rate, steps=steps, delta=delta)
        print(f"  one run, nothing compared        noise {single:.3f}")
        for mean in MEANS:
            try:
                noise = sgd_noise_multiplier(
                    epsilon=epsilon / mean, sampling_rate=rate, steps=steps, delta=delta / mean, tolerance=1e-2
                )
                added = f"{noise:.3f}"
            except BadParameterError:
                added = "out of reach"
            line = f"  {mean:3d} trials: added up {added:>12}"
            for law in (TrialLaw("poisson", mean), TrialLaw("geometric", mean)):
                noise = search_noise_multiplier(Trial(rate, steps), law, epsilon=epsilon, delta=delta)
                alone = sgd_epsilon(sampling_rate=rate, noise_multiplier=noise, steps=steps, delta=delta, coarse=True)
                line += f"   {law.kind} {noise:.3f} (its run alone: {alone:.2f})"
            print(line)


if __name__ == "__main__":
    main()
