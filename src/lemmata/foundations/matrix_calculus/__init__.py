"""Matrix calculus: derivatives by vectors, matrices and tensors, checked against autograd."""
