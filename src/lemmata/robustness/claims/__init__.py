"""attacks, their exact theory, and robust training."""
