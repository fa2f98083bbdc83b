"""How the statements about convolution are checked, one file per subject."""
