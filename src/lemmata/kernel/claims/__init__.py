"""What is true of tangent kernels, infinite width and Gaussian processes; one file a subject."""
