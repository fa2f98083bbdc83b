"""`lemmata serve` with 700 statements over all chapters: placeholders made of those that there are."""

import dataclasses
import sys

from lemmata import catalog
from lemmata.catalog import CHAPTERS, Catalog
from lemmata.judge.verdict import Result
from lemmata.lab.cli import main
from lemmata.lab.site import knowledge
from lemmata.lab.site.jobs import Jobs

MANY = 700
EVIDENCE = {"holds": True, "by": "exact", "measured": 1.0, "predicted": 1.0, "margin": 0.0, "alpha": 0.0}
EVIDENCE |= {"detail": "", "proof": False, "weak": "", "figure": None, "relation": "="}


class Crowd:
    """Knows 700 statements, each with its claim and verdict."""

    def __init__(self):
        real, self.found, self.results = catalog.load(), Catalog(), {}
        originals = [statement for id, statement in real.statements.items() if id in real.claims]
        for k in range(MANY):
            original = originals[k % len(originals)]
            id, chapter = f"{original.id}_{k}", CHAPTERS[k * len(CHAPTERS) // MANY]
            self.found.statements[id] = dataclasses.replace(original, id=id, chapter=chapter)
            entry = self.found.claims[id] = dataclasses.replace(real.claims[original.id], id=id)
            lies = [{"text": e.text, "printed": e.printed, "rejected": True, "how": "measured 7"} for e in entry.lies]
            self.results[id] = Result(id, "holds", "exact", 0.1, evidence=EVIDENCE, lies=lies)
        self.found.systems.update(real.systems)

    def now(self):
        return knowledge.Snapshot(self.found, self.results, knowledge.sources())


if __name__ == "__main__":
    crowd = Crowd()
    catalog.load = lambda: crowd.found
    Jobs.open = lambda self: None  # what is read needs no child processes
    knowledge._load_knowledge = lambda folder: crowd
    sys.exit(main(["serve", "--no-browser", "--offline", "--port", "0"]))
