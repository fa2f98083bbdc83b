"""The judge: claims, lies, evidence and verdicts.

A claim is a function whose default arguments are the truth. A lie is the same function called with another value.
The truth must hold and every lie must be rejected; otherwise the check is too weak to count.
"""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
