"""No certificate is false, on a short draw of the instances that `python -m tests.certificates` draws by thousands."""

import pytest
from tests.certificates.catalogue import CERTIFICATES
from tests.certificates.registry import run

INSTANCES = 200  # of each function; slow ones get their share of them
SEED = 0

pytestmark = [
    # The library must refuse bad input itself, without the shape checks that tests add.
    pytest.mark.usefixtures("unchecked"),
    # Warnings of the numbers themselves, which are as large and as small as numbers can be.
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


def short(certificate):
    return max(8, round(INSTANCES * certificate.share))


@pytest.mark.parametrize("certificate", CERTIFICATES, ids=lambda certificate: certificate.name)
def test_no_certificate_is_false(certificate):
    tally = run(certificate, short(certificate), SEED)
    assert not tally.wrong + tally.broke, "\n".join(tally.wrong + tally.broke)
    assert tally.refused < tally.instances  # or nothing was tried


@pytest.mark.parametrize(
    ("certificate", "fault"),
    [(certificate, fault) for certificate in CERTIFICATES for fault in certificate.broken],
    ids=lambda value: getattr(value, "name", value),
)
def test_the_same_instances_show_a_certificate_that_is_broken(certificate, fault):
    assert run(certificate, short(certificate), SEED, subject=certificate.broken[fault], patience=1).wrong


def test_an_instance_is_the_same_whatever_was_drawn_before():
    def failing(*arguments):
        raise KeyError

    for certificate in CERTIFICATES:
        (third,) = run(certificate, 1, SEED, first=2, subject=failing).broke
        assert run(certificate, 3, SEED, subject=failing).broke[2] == third


def test_refusals_are_counted_and_other_errors_are_faults():
    def refusing(*arguments):
        raise ValueError

    tally = run(CERTIFICATES[0], 5, SEED, subject=refusing)
    assert (tally.instances, tally.refused, tally.wrong, tally.broke) == (5, 5, [], [])
    assert len(run(CERTIFICATES[0], 5, SEED, subject=lambda *arguments: {}["no such answer"]).broke) == 5
