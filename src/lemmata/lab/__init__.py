"""What people touch: the command line, figures, and later the page."""
