"""All certificates that are driven."""

from tests.certificates import drive_matrices, drive_points, drive_quadratics

CERTIFICATES = (*drive_matrices.CERTIFICATES, *drive_points.CERTIFICATES, *drive_quadratics.CERTIFICATES)
