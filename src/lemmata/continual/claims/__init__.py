"""learning tasks one after the other."""
