"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.testing.attack import AttackError as AttackError
from lemmata.testing.attack import AttackReport as AttackReport
from lemmata.testing.attack import check_attack as check_attack
from lemmata.testing.equivariance import EquivarianceError as EquivarianceError
from lemmata.testing.equivariance import EquivarianceReport as EquivarianceReport
from lemmata.testing.equivariance import check_equivariance as check_equivariance
from lemmata.testing.findings import Finding as Finding
from lemmata.testing.findings import Nonconforming as Nonconforming
from lemmata.testing.findings import Report as Report
from lemmata.testing.flow import FlowError as FlowError
from lemmata.testing.flow import FlowReport as FlowReport
from lemmata.testing.flow import check_flow as check_flow
from lemmata.testing.module import ModuleError as ModuleError
from lemmata.testing.module import ModuleReport as ModuleReport
from lemmata.testing.module import check_module as check_module
from lemmata.testing.optimizer import OptimizerError as OptimizerError
from lemmata.testing.optimizer import OptimizerReport as OptimizerReport
from lemmata.testing.optimizer import check_optimizer as check_optimizer
from lemmata.testing.pytest_plugin import ClaimFile as ClaimFile
from lemmata.testing.pytest_plugin import ClaimItem as ClaimItem
from lemmata.testing.recurrence import RecurrenceError as RecurrenceError
from lemmata.testing.recurrence import RecurrenceReport as RecurrenceReport
from lemmata.testing.recurrence import check_recurrence as check_recurrence
from lemmata.testing.sampler import SamplerError as SamplerError
from lemmata.testing.sampler import SamplerReport as SamplerReport
from lemmata.testing.sampler import check_sampler as check_sampler
from lemmata.testing.strategy import StrategyError as StrategyError
from lemmata.testing.strategy import StrategyReport as StrategyReport
from lemmata.testing.strategy import check_strategy as check_strategy

__all__ = [
    "AttackError",
    "AttackReport",
    "ClaimFile",
    "ClaimItem",
    "EquivarianceError",
    "EquivarianceReport",
    "Finding",
    "FlowError",
    "FlowReport",
    "ModuleError",
    "ModuleReport",
    "Nonconforming",
    "OptimizerError",
    "OptimizerReport",
    "RecurrenceError",
    "RecurrenceReport",
    "Report",
    "SamplerError",
    "SamplerReport",
    "StrategyError",
    "StrategyReport",
    "check_attack",
    "check_equivariance",
    "check_flow",
    "check_module",
    "check_optimizer",
    "check_recurrence",
    "check_sampler",
    "check_strategy",
]
