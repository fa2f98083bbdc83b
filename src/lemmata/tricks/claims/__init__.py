"""How the statements about tricks of the trade are checked."""
