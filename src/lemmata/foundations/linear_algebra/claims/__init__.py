"""How the statements of linear algebra are checked."""
