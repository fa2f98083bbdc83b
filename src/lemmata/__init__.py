"""Deep learning's knowledge as software.

Every system of the course is a plain PyTorch component in a chapter package
(`lemmata.connectionism`, ...); every statement is a claim that `lemmata check` judges
together with lies it must reject. Importing this package imports nothing heavy.
"""

__version__ = "0.1.0"
