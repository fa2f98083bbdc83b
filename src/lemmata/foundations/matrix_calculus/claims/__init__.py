"""How the statements of matrix calculus are checked."""
