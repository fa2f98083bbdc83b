"""The output map: what three heads read from one recurrent layer, and what each of them learns."""

# torch types what a module holds as Tensor | Module, and a mark of a figure may be of any kind.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false

import math

import torch
from torch.nn import functional

from lemmata.judge import all_of, at_least, claim, close, lie, reaches
from lemmata.recurrent.claims.recall import learn
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.output_map import Autoregressor, SequenceClassifier, Tagger


def accuracy(logits, target):
    return (logits.argmax(-1) == target).double().mean().item()


def bits(draw, *shape):
    return torch.randint(2, shape, generator=draw.generator)


def parity_so_far(draw, steps=400):
    """The fraction of steps labelled with the right parity of all bits up to them."""
    tagger = Tagger(Elman(4, 32, "relu"), outputs=2, vocab_size=2)

    def loss():
        x = bits(draw, 32, 5)
        return functional.cross_entropy(tagger(x)[0].flatten(0, 1), x.cumsum(1).flatten() % 2)

    learn(tagger, loss, steps, lr=0.01)
    x = bits(draw, 500, 5)
    return accuracy(tagger(x)[0], x.cumsum(1) % 2)


def first_token(draw, steps=200):
    """The fraction of sequences, of several lengths, whose first token is told after their last one."""
    classifier = SequenceClassifier(Elman(4, 32), outputs=3, vocab_size=3)

    def examples(count):
        return torch.randint(3, (count, 6), generator=draw.generator), draw.integers(1, 7, count)

    def loss():
        x, lengths = examples(32)
        return functional.cross_entropy(classifier(x, lengths=lengths), x[:, 0])

    learn(classifier, loss, steps, lr=0.01)
    x, lengths = examples(500)
    return accuracy(classifier(x, lengths=lengths), x[:, 0])


PERIOD = torch.tensor([0, 1, 0, 2, 1, 0])  # what follows a 0 needs two tokens of memory


def periodic(starts, length):
    return PERIOD[(starts[:, None] + torch.arange(length)) % len(PERIOD)]


def next_token(draw, steps=120):
    """The fraction of tokens of a periodic string that are told once three of them are known."""
    model = Autoregressor(Elman(4, 16), vocab_size=3)

    def loss():
        return model.loss(periodic(draw.integers(0, 6, 16), 12))

    learn(model, loss, steps)
    x = periodic(torch.arange(6), 24)
    return accuracy(model(x)[0][:, 2:-1], x[:, 3:])


def copies_its_input(vocab_size):
    """A network whose every output says: the token that I have just read."""
    model = Autoregressor(Elman(vocab_size, vocab_size, activation="identity"), vocab_size).double()
    with torch.no_grad():
        model.embedding.weight.copy_(torch.eye(vocab_size))
        model.layer.input_weight.copy_(torch.eye(vocab_size))
        model.readout.weight.copy_(50 * torch.eye(vocab_size))
        for rest in (model.layer.recurrent_weight, model.layer.bias, model.readout.bias):
            rest.zero_()
    return model


def nll(model, x, lengths, shift):
    """The mean negative log-likelihood of tokens that are predicted from those `shift` steps before them."""
    parts = []
    for sequence, length in zip(x, lengths.tolist(), strict=True):
        logits = model(sequence[None, :length])[0][0]
        parts.append(functional.cross_entropy(logits[: length - shift], sequence[shift:length], reduction="none"))
    return torch.cat(parts).mean()


@claim("rnn.output_map")
@lie("the output at step t is compared with the token read at step t", shift=0)
@lie("a sequence is classified by its first output", read_at=0)
def one_layer_serves_three_heads(draw, shift=1, read_at=-1):
    """Heads with equal weights against each other; a network that copies its input; then three tasks."""
    tagger = Tagger(Elman(3, 5), outputs=4, activation="sigmoid").double()
    classifier = SequenceClassifier(Elman(3, 5), outputs=4, activation="sigmoid").double()
    classifier.load_state_dict(tagger.state_dict())
    x, lengths = draw.normal(6, 7, 3), torch.tensor([7, 1, 3, 7, 5, 2])
    z, w, c = tagger.layer(x)[0], tagger.readout.weight, tagger.readout.bias
    each = [tagger(one[None, :length])[0][0, read_at] for one, length in zip(x, lengths.tolist(), strict=True)]
    model, text = Autoregressor(Elman(4, 5), vocab_size=6).double(), draw.integers(0, 6, 6, 7)
    random = draw.integers(0, 6, 50, 40)
    heads = all_of(
        close(tagger(x)[0], torch.sigmoid(z @ w.T + c)),
        close(classifier(x, lengths=lengths), torch.stack(each)),
        close(model.loss(text, lengths), nll(model, text, lengths, shift)),
        # No network that has not read a fair token tells it better than by chance.
        at_least(nll(copies_its_input(6), random, torch.full((50,), 40), shift), math.log(6)),
    )
    if not heads.holds:
        return heads
    return all_of(
        reaches(parity_so_far(draw), 0.99, detail="parity so far"),
        reaches(next_token(draw), 0.99, detail="next token"),
        reaches(first_token(draw), 0.99, detail="first token"),
        heads,
    )
