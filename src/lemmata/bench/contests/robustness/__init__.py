"""Contests of attacks on classifiers."""
