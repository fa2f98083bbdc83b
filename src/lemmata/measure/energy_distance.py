"""Where `energy_distance` is found under its own name, until all imports say `sample_distances`."""

from lemmata.measure.sample_distances import energy_distance as energy_distance

__all__ = []
