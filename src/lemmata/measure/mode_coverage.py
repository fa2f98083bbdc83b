"""Where `mode_coverage` is found under its own name, until all imports say `covered_modes`."""

from lemmata.measure.covered_modes import mode_coverage as mode_coverage

__all__ = []
