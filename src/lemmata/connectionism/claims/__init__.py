"""How the statements of connectionism are checked, one file per subject."""
