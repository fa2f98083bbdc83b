"""All certificates that are driven."""

from tests.certificates import drive_matrices

CERTIFICATES = (*drive_matrices.CERTIFICATES,)
