"""learning to learn."""
