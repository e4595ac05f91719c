"""An example of a plug-in. Importing it registers everything, which `tacit --plugin` relies on. The task needs torch,
so only its place is named here, and it is imported when it is used."""

from tacit.encoders import ENCODERS
from tacit.evaluation.similarity import MEASURES
from tacit.experiments.data_sets import DATA_SETS
from tacit.training.task_registry import TASKS
from tacit_chebyshev.measure import same_length
from tacit_chebyshev.mechanism import ChebyshevWords
from tacit_chebyshev.trigrams import TrigramEncoder
from tacit_chebyshev.weather import WEATHER

MEASURES.register("same-length", same_length)
DATA_SETS.register("weather", WEATHER)
ENCODERS.register("trigrams", TrigramEncoder)
TASKS.register_place("topics", "tacit_chebyshev.topics:Topics")

__all__ = ["WEATHER", "ChebyshevWords", "TrigramEncoder", "same_length"]
