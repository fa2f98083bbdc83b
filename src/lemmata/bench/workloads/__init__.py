"""What several contests measure with: models, attention heads and loops written by hand."""
