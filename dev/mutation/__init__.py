"""Mutation: the code is broken in one place after the other, and claims and tests should notice (docs/mutation.md)."""

import os


def main(*words: str) -> int:
    """`python3 dev.py mutate WORDS`, in `.venv`; files are named as seen from where it is called."""
    from installation import BIN, HERE, call

    named = [os.path.abspath(word) if os.path.exists(word) else word for word in words]
    return call(BIN / "python", "-m", "mutation.mutate", *named, variables={"PYTHONPATH": str(HERE / "dev")})
