"""The labs of the chapter generative."""
