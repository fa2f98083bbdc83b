"""How the statements of analysis are checked."""
