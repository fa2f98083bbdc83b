"""`python -m lemmata`: the command line."""

import sys

from lemmata.lab.cli import main

sys.exit(main())
