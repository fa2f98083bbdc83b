"""What is true of sets, point clouds and graphs: each file checks the statements on one subject."""
