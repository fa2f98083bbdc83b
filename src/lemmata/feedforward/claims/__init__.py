"""How the statements of feed-forward networks are checked, one file per subject."""
