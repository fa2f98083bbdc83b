"""What tests of the audit share: a probe of their own in place of the shipped ones."""

import pytest

from lemmata.audit import auditing
from lemmata.audit.probe import Probe


@pytest.fixture
def asking(monkeypatch):
    """Let the audit ask these functions of (subject, clock) and no others."""

    def ask(*asks, share=0.5, needs=()):
        probes = [Probe(one.__name__, f"Title of {one.__name__}", one, 1, share, needs) for one in asks]
        monkeypatch.setattr(auditing, "all_probes", lambda: probes)

    return ask
