"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.audit.auditing import audit as audit
from lemmata.audit.finding import AuditFinding as AuditFinding
from lemmata.audit.report import AuditReport as AuditReport

__all__ = [
    "AuditFinding",
    "AuditReport",
    "audit",
]
