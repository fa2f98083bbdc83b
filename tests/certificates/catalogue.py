"""All certificates that are driven."""

from tests.certificates import drive_functions, drive_matrices, drive_points, drive_quadratics, drive_recurrences

DRIVERS = (drive_matrices, drive_points, drive_quadratics, drive_functions, drive_recurrences)
CERTIFICATES = tuple(certificate for module in DRIVERS for certificate in module.CERTIFICATES)
