"""How the statements of activations are checked."""
