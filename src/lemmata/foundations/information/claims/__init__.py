"""How the statements of information are checked."""
