"""densities by change of variables."""
