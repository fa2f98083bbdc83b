"""`python -m lemmata.lab.cli`, where the `lemmata` script is not on the path."""

import sys

from lemmata.lab.cli import main

sys.exit(main())
