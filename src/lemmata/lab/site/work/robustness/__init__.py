"""The labs of the chapter robustness."""
