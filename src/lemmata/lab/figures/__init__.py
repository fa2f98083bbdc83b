"""Figures drawn: as SVG for pages, as text for terminals, as matplotlib axes for notebooks."""
