"""two-player games, Wasserstein distances and discrepancies."""
