"""Deep learning's knowledge as software.

Every system of the course is a plain PyTorch component in a chapter package
(`lemmata.connectionism`, ...); every statement is a claim that `lemmata check` judges
together with lies it must reject. Importing this package imports nothing heavy.
"""

__version__ = "0.1.0"


def load(run, device: str = "cpu"):
    """The trained system of a run folder, ready to use: `lemmata.load("runs/mlp-fashion-1")`."""
    import importlib  # and by it torch: not before it is needed

    return importlib.import_module("lemmata.train.saved").load_run(run, device)
