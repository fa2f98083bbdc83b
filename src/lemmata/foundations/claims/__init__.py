"""How the statements of foundations are checked, one file per subject."""
