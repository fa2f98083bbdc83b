"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.audit.as_found import kept_as_found as kept_as_found
from lemmata.audit.auditing import audit as audit
from lemmata.audit.clock import Clock as Clock
from lemmata.audit.clock import OutOfTime as OutOfTime
from lemmata.audit.finding import AuditFinding as AuditFinding
from lemmata.audit.probe import Probe as Probe
from lemmata.audit.probe import probe as probe
from lemmata.audit.report import AuditReport as AuditReport
from lemmata.audit.sample import Sample as Sample
from lemmata.audit.subject import Subject as Subject
from lemmata.audit.subject import Training as Training

__all__ = [
    "AuditFinding",
    "AuditReport",
    "Clock",
    "OutOfTime",
    "Probe",
    "Sample",
    "Subject",
    "Training",
    "audit",
    "kept_as_found",
    "probe",
]
