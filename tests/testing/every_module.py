"""Run by test_every_module.py: check_module on every module that is marked as a system, in one process.

It prints one line of JSON for each: its name, what fell and why, and the CPU seconds. Arguments name classes or
chapters; `--costly` runs the checks that are left out otherwise.
"""

import importlib
import json
import sys
import time

import torch

from lemmata import catalog
from lemmata.testing import check_module
from lemmata.testing.module import CHECKS

# Networks of many layers, and BERT again with other heads: to trace each of them takes many seconds.
COSTLY = "DenseNet GoogLeNet ResNet PointNetFeatures PointNetClassifier PointNetSegmenter".split()
COSTLY += "BertForPretraining QuestionAnswerer SentenceClassifier SentenceEncoder Tagger".split()
TRACED = {"gradcheck", "compile", "export", "export_lengths"}


def checked(entry: catalog.SystemEntry, costly: bool) -> dict[str, object]:
    """What fell of one module."""
    begun = time.process_time()
    skip = set(CHECKS) - TRACED if costly else TRACED if entry.name in COSTLY else set()
    try:
        system = getattr(importlib.import_module(entry.module), entry.name)
        findings = check_module(system, skip=skip, on_fail="report").findings
        fell = {finding.check: finding.why for finding in findings if finding.outcome == "failed"}
    except Exception as error:
        fell = {"example": f"{type(error).__name__}: {error}"}
    return {"system": entry.name, "chapter": entry.chapter, "fell": fell, "seconds": time.process_time() - begun}


if __name__ == "__main__":
    names = set(sys.argv[1:]) - {"--costly"}
    costly = "--costly" in sys.argv
    torch.set_num_threads(1)  # examples are small, and others wait for the processor
    for entry in catalog.load().systems.values():
        wanted = entry.kind == "module" and (not costly or entry.name in COSTLY)
        if wanted and (not names or names & {entry.name, entry.chapter}):
            print(json.dumps(checked(entry, costly)), flush=True)
