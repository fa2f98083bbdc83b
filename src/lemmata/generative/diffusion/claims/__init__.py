"""diffusion, scores and Langevin dynamics."""
