"""What is true of samplers, posteriors and ensembles; one file a subject."""
