"""All certificates that are driven, and how one process takes its part of their instances."""

import warnings

import torch
from tests.certificates import drive_functions, drive_matrices, drive_points, drive_quadratics, drive_recurrences
from tests.certificates.registry import Tally, run

DRIVERS = (drive_matrices, drive_points, drive_quadratics, drive_functions, drive_recurrences)
CERTIFICATES = tuple(certificate for module in DRIVERS for certificate in module.CERTIFICATES)
BY_NAME = {certificate.name: certificate for certificate in CERTIFICATES}


def part(name: str, count: int, seed: int, first: int, fault: str | None) -> Tally:
    """Drive so many instances of a certificate, or of one that is broken by that fault."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of numbers that are as large and as small as numbers can be
    certificate = BY_NAME[name]
    return run(certificate, count, seed, first, certificate.broken[fault] if fault else None)
