"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

__all__ = []
