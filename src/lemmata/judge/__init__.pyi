"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.judge.bounds import at_least as at_least
from lemmata.judge.bounds import at_most as at_most
from lemmata.judge.checking import Verdicts as Verdicts
from lemmata.judge.checking import check as check
from lemmata.judge.decorators import Claim as Claim
from lemmata.judge.decorators import Lie as Lie
from lemmata.judge.decorators import claim as claim
from lemmata.judge.decorators import lie as lie
from lemmata.judge.dial import Dial as Dial
from lemmata.judge.dial import dial_of as dial_of
from lemmata.judge.dial import is_number as is_number
from lemmata.judge.draw import Draw as Draw
from lemmata.judge.draw import seed_of as seed_of
from lemmata.judge.engine import Engine as Engine
from lemmata.judge.engine import ProcessEngine as ProcessEngine
from lemmata.judge.engine import TIME_LIMIT as TIME_LIMIT
from lemmata.judge.engine import Task as Task
from lemmata.judge.enumeration import Domain as Domain
from lemmata.judge.enumeration import count_is as count_is
from lemmata.judge.enumeration import everywhere as everywhere
from lemmata.judge.enumeration import same_everywhere as same_everywhere
from lemmata.judge.evidence import ALPHA as ALPHA
from lemmata.judge.evidence import BETA as BETA
from lemmata.judge.evidence import Degenerate as Degenerate
from lemmata.judge.evidence import Evidence as Evidence
from lemmata.judge.evidence import Skip as Skip
from lemmata.judge.evidence import all_of as all_of
from lemmata.judge.evidence_words import sentence as sentence
from lemmata.judge.exact import always as always
from lemmata.judge.exact import exactly as exactly
from lemmata.judge.exact import symbolic as symbolic
from lemmata.judge.figure import Band as Band
from lemmata.judge.figure import Bars as Bars
from lemmata.judge.figure import Figure as Figure
from lemmata.judge.figure import Heat as Heat
from lemmata.judge.figure import Image as Image
from lemmata.judge.figure import Line as Line
from lemmata.judge.figure import Points as Points
from lemmata.judge.figure import Polygons as Polygons
from lemmata.judge.fingerprint import versions as versions
from lemmata.judge.ledger import Ledger as Ledger
from lemmata.judge.moved_claim import dials as dials
from lemmata.judge.moved_claim import probe_claim as probe_claim
from lemmata.judge.numeric import close as close
from lemmata.judge.pictures import figure_of as figure_of
from lemmata.judge.pictures import watched as watched
from lemmata.judge.rates import slope_is as slope_is
from lemmata.judge.ray_engine import RayEngine as RayEngine
from lemmata.judge.runner import judge as judge
from lemmata.judge.session import judge_all as judge_all
from lemmata.judge.session import remembered as remembered
from lemmata.judge.sharpness import notices as notices
from lemmata.judge.sharpness import sharpen as sharpen
from lemmata.judge.statistics import law_is as law_is
from lemmata.judge.statistics import mean_is as mean_is
from lemmata.judge.statistics import probability_is as probability_is
from lemmata.judge.training import reaches as reaches
from lemmata.judge.verdict import ENOUGH as ENOUGH
from lemmata.judge.verdict import Result as Result
from lemmata.judge.verdict import VERDICTS as VERDICTS
from lemmata.judge.verdict import is_blunt as is_blunt
from lemmata.judge.verdict import merge as merge
from lemmata.judge.worker import perform as perform

__all__ = [
    "ALPHA",
    "BETA",
    "Band",
    "Bars",
    "Claim",
    "Degenerate",
    "Dial",
    "Domain",
    "Draw",
    "ENOUGH",
    "Engine",
    "Evidence",
    "Figure",
    "Heat",
    "Image",
    "Ledger",
    "Lie",
    "Line",
    "Points",
    "Polygons",
    "ProcessEngine",
    "RayEngine",
    "Result",
    "Skip",
    "TIME_LIMIT",
    "Task",
    "VERDICTS",
    "Verdicts",
    "all_of",
    "always",
    "at_least",
    "at_most",
    "check",
    "claim",
    "close",
    "count_is",
    "dial_of",
    "dials",
    "everywhere",
    "exactly",
    "figure_of",
    "is_blunt",
    "is_number",
    "judge",
    "judge_all",
    "law_is",
    "lie",
    "mean_is",
    "merge",
    "notices",
    "perform",
    "probability_is",
    "probe_claim",
    "reaches",
    "remembered",
    "same_everywhere",
    "seed_of",
    "sentence",
    "sharpen",
    "slope_is",
    "symbolic",
    "versions",
    "watched",
]
