"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.data.archives import ArchiveError as ArchiveError
from lemmata.data.array_file import read_arrays as read_arrays
from lemmata.data.block_graphs import block_graph as block_graph
from lemmata.data.cache import cached_path as cached_path
from lemmata.data.columns import as_examples as as_examples
from lemmata.data.columns import inputs_and_target as inputs_and_target
from lemmata.data.examples import Dataset as Dataset
from lemmata.data.examples import Example as Example
from lemmata.data.examples import Examples as Examples
from lemmata.data.fetch import FetchError as FetchError
from lemmata.data.fetched_brown import brown as brown
from lemmata.data.fetched_cifar import cifar10 as cifar10
from lemmata.data.fetched_graphs import Molecule as Molecule
from lemmata.data.fetched_graphs import mutag as mutag
from lemmata.data.fetched_mnist import fashion_mnist as fashion_mnist
from lemmata.data.fetched_mnist import kmnist as kmnist
from lemmata.data.fetched_mnist import mnist as mnist
from lemmata.data.fetched_omniglot import omniglot as omniglot
from lemmata.data.fetched_text import imdb as imdb
from lemmata.data.graphs import GraphDataset as GraphDataset
from lemmata.data.graphs import debian as debian
from lemmata.data.graphs import karate as karate
from lemmata.data.image_file import read_image as read_image
from lemmata.data.image_folder import read_images as read_images
from lemmata.data.images import digits as digits
from lemmata.data.images import fashion as fashion
from lemmata.data.images import glyphs as glyphs
from lemmata.data.images import photos as photos
from lemmata.data.margins import separable as separable
from lemmata.data.mixtures import gaussian_mixture as gaussian_mixture
from lemmata.data.own_files import FileChoices as FileChoices
from lemmata.data.own_files import load_file as load_file
from lemmata.data.parities import parity as parity
from lemmata.data.patients import breast_cancer as breast_cancer
from lemmata.data.patients import diabetes as diabetes
from lemmata.data.planar import moons as moons
from lemmata.data.planar import rings as rings
from lemmata.data.planar import spirals as spirals
from lemmata.data.planar import xor as xor
from lemmata.data.point_clouds import Model as Model
from lemmata.data.point_clouds import furniture as furniture
from lemmata.data.preparation import Preparation as Preparation
from lemmata.data.registry import DatasetEntry as DatasetEntry
from lemmata.data.registry import dataset as dataset
from lemmata.data.registry import entries as entries
from lemmata.data.registry import load as load
from lemmata.data.sentences import facts as facts
from lemmata.data.sentences import homographs as homographs
from lemmata.data.sentences import negation as negation
from lemmata.data.sentences import plays_or_verses as plays_or_verses
from lemmata.data.sequences import adding as adding
from lemmata.data.sequences import echo as echo
from lemmata.data.sound import mu_law as mu_law
from lemmata.data.sound import mu_law_inverse as mu_law_inverse
from lemmata.data.sound import speech as speech
from lemmata.data.sound import wav_bytes as wav_bytes
from lemmata.data.tables import Table as Table
from lemmata.data.tables import read_table as read_table
from lemmata.data.tasks import sinusoids as sinusoids
from lemmata.data.teachers import teacher as teacher
from lemmata.data.text import Vocabulary as Vocabulary
from lemmata.data.text import shakespeare as shakespeare
from lemmata.data.text import verses as verses
from lemmata.data.text import windows as windows
from lemmata.data.text import words as words

__all__ = [
    "ArchiveError",
    "Dataset",
    "DatasetEntry",
    "Example",
    "Examples",
    "FetchError",
    "FileChoices",
    "GraphDataset",
    "Model",
    "Molecule",
    "Preparation",
    "Table",
    "Vocabulary",
    "adding",
    "as_examples",
    "block_graph",
    "breast_cancer",
    "brown",
    "cached_path",
    "cifar10",
    "dataset",
    "debian",
    "diabetes",
    "digits",
    "echo",
    "entries",
    "facts",
    "fashion",
    "fashion_mnist",
    "furniture",
    "gaussian_mixture",
    "glyphs",
    "homographs",
    "imdb",
    "inputs_and_target",
    "karate",
    "kmnist",
    "load",
    "load_file",
    "mnist",
    "moons",
    "mu_law",
    "mu_law_inverse",
    "mutag",
    "negation",
    "omniglot",
    "parity",
    "photos",
    "plays_or_verses",
    "read_arrays",
    "read_image",
    "read_images",
    "read_table",
    "rings",
    "separable",
    "shakespeare",
    "sinusoids",
    "speech",
    "spirals",
    "teacher",
    "verses",
    "wav_bytes",
    "windows",
    "words",
    "xor",
]
