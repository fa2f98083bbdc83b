"""What tests of the lab share: a cache in which the package was read before, as on anybody's second day."""

import os
import shutil
import subprocess
import sys

import pytest

from lemmata.files import cache_folder


@pytest.fixture(scope="session")
def indices(pytestconfig, caches):
    """What reading the package leaves in a cache, kept from one run to the next: no test is about how long it takes."""
    kept = pytestconfig.cache.mkdir("lemmata-read")
    env = os.environ | {"LEMMATA_CACHE": str(kept)}
    subprocess.run([sys.executable, "-m", "lemmata", "claims"], env=env, stdout=subprocess.DEVNULL, check=True)
    near = caches / "read"  # where the tests' own caches are: there are no links from one disk to another
    near.mkdir()
    for index in kept.glob("*.json"):
        shutil.copy(index, near)
    return list(near.iterdir())


@pytest.fixture(autouse=True)
def _read_before(_alone, indices):
    """Every process that a test starts would read the whole source again: a second and a half of each."""
    cache_folder().mkdir(parents=True)
    for index in indices:
        os.link(index, cache_folder() / index.name)  # never written to: an index that changes is a new file
