"""Contests of generative models."""
