"""Networks with weights that a claim draws."""


def filled(draw, network):
    """The network with normal weights and biases of deviation 1/sqrt(inputs) and 1, in double precision."""
    network = network.double().requires_grad_(False)
    for values in network.parameters():
        scale = values.shape[-1] ** -0.5 if values.ndim == 2 else 1.0
        values.copy_(scale * draw.normal(*values.shape))
    return network
