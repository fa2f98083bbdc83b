r"""Whether a model has learnt something yet: what is said of a finished model need not hold for a fresh one."""

from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject

__all__: list[str] = []

# The loss of a trained model over that of its mean answer. Fresh outputs of size 0.3 that are right by luck reach
# log(1 + exp(-0.3)) / log 2 = 0.8 for two classes; squared errors of fresh outputs stay near those of their mean.
TRAINED = {"classes": 0.75, "binary": 0.75, "numbers": 0.9}


def is_trained(subject: Subject, sample: Sample) -> bool:
    """Whether the loss is well below that of a constant answer; needs targets that can be used."""
    if sample.targets is None or subject.unusable:
        return False
    outputs = subject.outputs(sample).float()
    constant = outputs.mean(0, keepdim=True).expand_as(outputs)
    here, there = (float(subject.loss(values, sample.targets)) for values in (outputs, constant))
    return here <= TRAINED[subject.task] * there
