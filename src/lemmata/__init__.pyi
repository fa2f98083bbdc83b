"""What type checkers see of the package: chapters and rooms as modules, and the names people use first."""

from lemmata import bench as bench
from lemmata import connectionism as connectionism
from lemmata import data as data
from lemmata import fast as fast
from lemmata import feedforward as feedforward
from lemmata import foundations as foundations
from lemmata import judge as judge
from lemmata import measure as measure
from lemmata import recurrent as recurrent
from lemmata import testing as testing
from lemmata import train as train
from lemmata.judge.checking import check as check
from lemmata.train.loop import fit as fit
from lemmata.train.saved import load_run as load

__version__: str
