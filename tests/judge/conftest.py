"""Claims for the judge to judge: in this process, or in a file of their own."""

import textwrap

import pytest

from lemmata.catalog import read_claims

OPENING = "import os, signal, sys, torch\nfrom lemmata.judge import *\n"


@pytest.fixture
def write_claims(tmp_path):
    """Write a claims file and read it as `lemmata check FILE` does."""

    def write(text, name="mine.py", opening=OPENING):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(opening + textwrap.dedent(text))
        problems = []
        entries = list(read_claims(path, path.stem, problems))
        assert problems == []
        return entries

    return write
