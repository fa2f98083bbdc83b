"""What is measured: one contest a file, found by reading the files."""
