"""autoregressive models."""
