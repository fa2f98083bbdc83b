"""Made by `python3 dev.py lint --fix`: packages with something for users, and the names people use first."""

from lemmata import audit as audit
from lemmata import bayes as bayes
from lemmata import bench as bench
from lemmata import certified as certified
from lemmata import connectionism as connectionism
from lemmata import continual as continual
from lemmata import convolution as convolution
from lemmata import data as data
from lemmata import fast as fast
from lemmata import feedforward as feedforward
from lemmata import foundations as foundations
from lemmata import generalization as generalization
from lemmata import generative as generative
from lemmata import geometric as geometric
from lemmata import judge as judge
from lemmata import kernel as kernel
from lemmata import measure as measure
from lemmata import meta as meta
from lemmata import optim as optim
from lemmata import recurrent as recurrent
from lemmata import robustness as robustness
from lemmata import testing as testing
from lemmata import train as train
from lemmata import transformers as transformers
from lemmata import tricks as tricks
from lemmata import vision as vision
from lemmata.judge.checking import check as check
from lemmata.train.loop import fit as fit
from lemmata.train.saved import load_run as load

__version__: str
