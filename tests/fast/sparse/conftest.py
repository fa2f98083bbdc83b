"""The libraries of sums over neighbours, made once and kept: no test is about how long a compiler takes."""

import pytest

from lemmata.fast.sparse import compiled, sorted_edges


@pytest.fixture(scope="session", autouse=True)
def _sparse_libraries(pytestconfig):
    """Loaded before any test moves the cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEMMATA_CACHE", str(pytestconfig.cache.mkdir("lemmata")))
        for dtype in compiled.NUMBERS:
            compiled.why_not_compiled(dtype)
        sorted_edges._sorting_library()


@pytest.fixture(params=["as it comes", "three threads", "no compiler"])
def way(request, monkeypatch):
    """Every way on a processor: alone, shared by threads, and by the readable path."""
    if request.param == "three threads":
        monkeypatch.setattr(compiled, "WORTH_A_THREAD", 1)
        monkeypatch.setattr("torch.get_num_threads", lambda: 3)
    if request.param == "no compiler":
        monkeypatch.setattr(compiled, "why_not_compiled", lambda dtype: "switched off")
    return request.param
