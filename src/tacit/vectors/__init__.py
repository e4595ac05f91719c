"""Public word vectors: loading, bounding maps with their sensitivity, exact distances, nearest words."""

from tacit.vectors.bounding import Bounding, Sensitivity, bounding, vocabulary_sensitivity
from tacit.vectors.distance_rows import DistanceRows, distance_error_bound
from tacit.vectors.geometry import closest_pairs, diameter, median_distance, smallest_positive_distance
from tacit.vectors.load import KNOWN_VECTORS, load_vectors
from tacit.vectors.search import Neighbors
from tacit.vectors.table import VectorTable

__all__ = [
    "KNOWN_VECTORS",
    "Bounding",
    "DistanceRows",
    "Neighbors",
    "Sensitivity",
    "VectorTable",
    "bounding",
    "closest_pairs",
    "diameter",
    "distance_error_bound",
    "load_vectors",
    "median_distance",
    "smallest_positive_distance",
    "vocabulary_sensitivity",
]
