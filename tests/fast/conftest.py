"""The scan's libraries, made once and kept from one run to the next: no test is about how long a compiler takes."""

import pytest

from lemmata.fast import scan_compiled


@pytest.fixture(scope="session", autouse=True)
def _libraries(pytestconfig):
    """Loaded before any test moves the cache; whatever the compiler, the source or the processor, each has its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEMMATA_CACHE", str(pytestconfig.cache.mkdir("lemmata")))
        for dtype in scan_compiled.NUMBERS:
            scan_compiled.why_not_compiled(dtype)
