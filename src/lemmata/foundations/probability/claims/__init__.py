"""How the statements of probability are checked."""
