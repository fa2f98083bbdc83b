"""How the statements about gradient-based learning are checked."""
