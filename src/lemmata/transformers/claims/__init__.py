"""What is true of recurrent networks: each file checks the statements on one subject."""
