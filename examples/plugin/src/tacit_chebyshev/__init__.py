"""An example of a plug-in. Importing it registers everything, which `tacit --plugin` relies on."""

from tacit.evaluation.similarity import MEASURES
from tacit.experiments.data_sets import DATA_SETS
from tacit_chebyshev.measure import same_length
from tacit_chebyshev.mechanism import ChebyshevWords
from tacit_chebyshev.weather import WEATHER

MEASURES.register("same-length", same_length)
DATA_SETS.register("weather", WEATHER)

__all__ = ["WEATHER", "ChebyshevWords", "same_length"]
