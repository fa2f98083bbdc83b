"""Contests of kernels, samplers and ensembles."""
