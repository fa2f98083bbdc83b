"""What is true of dimension, flatness, PAC-Bayes bounds and the error; one file a subject."""
