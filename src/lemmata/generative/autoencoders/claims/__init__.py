"""autoencoders, factor analysis and variational autoencoders."""
