"""Sums over the neighbours in a graph, without a tensor that has a row for every edge."""
