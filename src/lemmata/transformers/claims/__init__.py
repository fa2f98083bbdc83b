"""What is true of attention and transformers: each file checks the statements on one subject."""
