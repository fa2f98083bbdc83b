"""Transformers: attention, positions, encoders and decoders, BERT, GPT and ViT with the weights that the world uses."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
