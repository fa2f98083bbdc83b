"""The output map: what three heads read from one recurrent layer, and what each of them learns."""

# torch types what a module holds as Tensor | Module, and a mark of a figure may be of any kind.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false

import math
from functools import partial

import torch
from torch.nn import functional

from lemmata.judge import all_of, at_least, at_most, claim, close, exactly, lie, probability_is, reaches
from lemmata.recurrent.cells import CELLS
from lemmata.recurrent.character_model import CharacterModel
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.output_map import Autoregressor, SequenceClassifier, Tagger
from lemmata.recurrent.sequence_reader import SequenceReader


def learn(model, loss, steps, rate=0.02):
    """Adam on a loss that draws its own examples; the gradient is shortened to length 1."""
    weights = list(model.parameters())
    first, second = [torch.zeros_like(w) for w in weights], [torch.zeros_like(w) for w in weights]
    for step in range(1, steps + 1):
        gradients = torch.autograd.grad(loss(), weights)
        length = torch.stack([g.norm() for g in gradients]).norm().clamp(min=1.0)
        size = rate * math.sqrt(1 - 0.999**step) / (1 - 0.9**step) * (1 - step / (steps + 1))
        with torch.no_grad():
            for w, g, m, v in zip(weights, gradients, first, second, strict=True):
                m.lerp_(g / length, 0.1)
                v.lerp_((g / length).square(), 0.001)
                w -= size * m / (v.sqrt() + 1e-8)
    return model


def accuracy(logits, target):
    return (logits.argmax(-1) == target).double().mean().item()


def bits(draw, *shape):
    return torch.randint(2, shape, generator=draw.generator)


def parity_so_far(draw, steps=250):
    """The share of steps labelled with the right parity of all bits up to them."""
    tagger = Tagger(Elman(4, 32, "relu"), outputs=2, vocab_size=2)

    def loss():
        x = bits(draw, 32, 5)
        return functional.cross_entropy(tagger(x)[0].flatten(0, 1), x.cumsum(1).flatten() % 2)

    learn(tagger, loss, steps, rate=0.01)
    x = bits(draw, 500, 5)
    return accuracy(tagger(x)[0], x.cumsum(1) % 2)


def first_symbol(draw, steps=200):
    """The share of sequences, of several lengths, whose first token is told after their last one."""
    classifier = SequenceClassifier(Elman(4, 32), outputs=3, vocab_size=3)

    def examples(count):
        return torch.randint(3, (count, 6), generator=draw.generator), draw.integers(1, 7, count)

    def loss():
        x, lengths = examples(32)
        return functional.cross_entropy(classifier(x, lengths=lengths), x[:, 0])

    learn(classifier, loss, steps, rate=0.01)
    x, lengths = examples(500)
    return accuracy(classifier(x, lengths=lengths), x[:, 0])


PERIOD = torch.tensor([0, 1, 0, 2, 1, 0])  # what follows a 0 needs two tokens of memory


def periodic(starts, length):
    return PERIOD[(starts[:, None] + torch.arange(length)) % len(PERIOD)]


def next_symbol(draw, steps=120):
    """A model of a periodic string, and the fraction of tokens it tells once three of them are known."""
    model = Autoregressor(Elman(4, 16), vocab_size=3)

    def loss():
        return model.loss(periodic(draw.integers(0, 6, 16), 12))

    learn(model, loss, steps)
    x = periodic(torch.arange(6), 24)
    return model, accuracy(model(x)[0][:, 2:-1], x[:, 3:])


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
    """The mean nll, one sequence after another, of tokens predicted from those `shift` steps before them."""
    parts = []
    for sequence, length in zip(x, lengths.tolist(), strict=True):
        logits = model(sequence[None, :length])[0][0]
        parts.append(functional.cross_entropy(logits[: length - shift], sequence[shift:length], reduction="none"))
    return torch.cat(parts).mean()


def layer_by_layer(model, x, width):
    """The outputs of a head's last layer, one layer after another, brought to mean 0 and variance 1; and its states."""
    states = []
    for layer in model.layer.layers:
        x, state = layer(x)
        states += state if isinstance(state, tuple) else [state]
    return functional.layer_norm(x, (width,)) @ model.readout.weight.T + model.readout.bias, states


def read_again(model, text, length, temperature, generator):
    """A text written on by a model that reads all of it again for every token."""
    written = text
    for _ in range(length):
        logits = model(written)[0][:, -1]
        if temperature:
            token = functional.softmax(logits / temperature, 1).multinomial(1, generator=generator)
        else:
            token = logits.argmax(1, keepdim=True)
        written = torch.cat([written, token], 1)
    return written[:, text.shape[1] :]


@torch.no_grad()
def models_of_text(draw):
    """Models of characters, with every cell: logits, nll and writing against their parts."""
    parts = []
    for cell in CELLS:
        model = CharacterModel(7, cell, width=4, hidden=5, memory=10).double()
        text = draw.integers(0, 7, 3, 9)
        x, y = text[:, :-1], text[:, 1:]
        logits, states = layer_by_layer(model, functional.embedding(x, model.embedding.weight), 4)
        chances = functional.softmax(logits, -1).gather(2, y[..., None])[..., 0]
        parts += [
            exactly([state.shape for state in states], [(3, 5)] * (4 if cell == "lstm" else 2)),
            exactly(len(model.layer.layers[0].network[1].weight), 8),
            close(model(x)[0], logits),
            close(model.nll(x, y), -chances.log()),
            close(model.nll(x[:, 4:], y[:, 4:], model(x[:, :4])[1]), -chances.log()[:, 4:]),
            close(model.bits(x, y), -chances.log2().mean()),
        ]
    many = CharacterModel(2000, "elman", width=4, hidden=5).embedding.weight
    parts.append(close(many.square().mean(), 1.0, within=0.15))  # nine times the spread of the mean of 8,000 squares
    for cell, depth in (("lstm", 1), ("lru", 3)):
        thinned = CharacterModel(7, cell, width=4, hidden=5, depth=depth, expansion=1, dropout=0.5).double()
        seed = int(draw.integers(0, 2**31, 1))
        one, two, three, four = (torch.Generator().manual_seed(seed + k // 2) for k in range(4))
        written = [thinned.sample(text, 5, *way) for way in ((0, None), (1.0, one), (0.3, three))]
        parts.append(exactly([thinned.training, len(thinned.layer.layers)], [True, depth]))
        thinned.eval()  # dropout is for training alone, and a text is never written in training
        again = [read_again(thinned, text, 5, *way) for way in ((0, None), (1.0, two), (0.3, four))]
        parts.append(exactly(torch.stack(written), torch.stack(again)))
    return parts


def readers(draw):
    """Networks that answer at the end, with every cell, of numbers and tokens: answers and states by their parts."""
    parts = []
    for number, cell in enumerate(CELLS):
        depth, vocab_size = (None, 2, 3)[number % 3], (None, 6)[number % 2]
        sizes = {"width": 4, "hidden": 5, "memory": 10, "vocab_size": vocab_size} | ({"depth": depth} if depth else {})
        reader = SequenceReader(2, 3, cell, **sizes).double()
        x = draw.normal(3, 6, 2) if vocab_size is None else draw.integers(0, 6, 3, 6)
        if vocab_size is None:
            total = x @ reader.encode[0].weight.T + reader.encode[0].bias
            below = total * torch.special.ndtr(total)
        else:
            below = functional.embedding(x, reader.embedding.weight)
        answers, states = reader.with_states(x)
        lowest = reader.layers[0]
        apart = [lowest(below[:, :t])[1] for t in range(7)]
        wanted, ends = layer_by_layer(reader, below, 4)
        parts += [
            exactly([state.shape for state in ends], [(3, 5)] * ((2 if cell == "lstm" else 1) * (depth or 1))),
            exactly([len(states), len(lowest.network[1].weight)], [7, 8]),
            close(reader(x), wanted[:, -1]),
            close(answers, wanted[:, -1]),
            *(close(real(a), real(b)) for a, b in zip(states, apart, strict=True)),
        ]
    return parts


def real(state):
    """A state of one or several tensors as one tensor of real numbers."""
    joined = torch.cat(state, 1) if isinstance(state, tuple) else state
    return torch.view_as_real(joined) if joined.is_complex() else joined


@claim("rnn.output_map")
@lie("the output at step t is compared with the token read at step t", shift=0)
@lie("a sequence is classified by its first output", read_at=0)
@lie("the temperature multiplies the logits", power=1.0)
def one_layer_serves_three_heads(draw, shift=1, read_at=-1, power=-1.0):
    """Heads with equal weights against each other; a network that copies its input; models of layers; three tasks."""
    tagger = Tagger(Elman(3, 5), outputs=4, activation="sigmoid").double()
    classifier = SequenceClassifier(Elman(3, 5), outputs=4, activation="sigmoid").double()
    classifier.load_state_dict(tagger.state_dict())
    x, lengths = draw.normal(6, 7, 3), torch.tensor([7, 1, 3, 7, 5, 2])
    labels, last = tagger(x)
    each = [tagger(one[None, :length])[0][0, read_at] for one, length in zip(x, lengths.tolist(), strict=True)]
    early, middle = tagger(x[:, :4])
    late, end = tagger(x[:, 4:], middle)
    z = tagger.layer(x)[0]
    model, text = Autoregressor(Elman(4, 5), vocab_size=6).double(), draw.integers(0, 6, 6, 7)
    whole = torch.full((6,), 7)
    copying, random = copies_its_input(6), draw.integers(0, 6, 50, 40)
    leak = nll(copying, random, torch.full((50,), 40), shift)
    logits = draw.permutation(6).double() / 2
    with torch.no_grad():
        copying.readout.weight.zero_()
        copying.readout.bias.copy_(logits)
    top, alone = int(logits.argmax()), functional.softmax(logits, dim=0)
    wanted = functional.softmax(64.0 * logits * 64.0**power, dim=0)

    def drawn(n, factor=1.0, **choice):
        with torch.no_grad():
            copying.readout.bias.copy_(factor * logits)
        return copying.sample(random[:1, :1].expand(n, 1), 2, generator=draw.generator, **choice)[:, 1] == top

    heads = all_of(
        exactly([labels.shape, model(text)[0].shape, classifier(x).shape], [(6, 7, 4), (6, 7, 6), (6, 4)]),
        close(classifier(x, lengths=lengths), torch.stack(each)),
        close(classifier(x), labels[:, read_at]),
        close(classifier(x, lengths=0 * lengths), torch.sigmoid(classifier.readout.bias).expand(6, 4)),
        close(model(text[:, 4:], model(text[:, :4])[1])[0], model(text)[0][:, 4:]),
        close(torch.cat([early, late], dim=1), labels),
        close(end, last),
        close(labels, torch.sigmoid(z @ tagger.readout.weight.T + tagger.readout.bias)),
        close(classifier(x, middle)[0], tagger(x, middle)[0][0, read_at]),
        # No network that has not read a fair token tells it better than by chance.
        at_least(leak, math.log(6)),
        close(model.loss(text), nll(model, text, whole, shift)),
        close(model.loss(text, lengths), nll(model, text, lengths, shift)),
        close(copying.loss(random), -functional.log_softmax(logits, 0)[random[:, 1:]].mean()),
        probability_is(partial(drawn, factor=64.0, temperature=64.0), wanted[top], effect=0.018, alpha=5e-10),
        probability_is(drawn, alone[top], effect=0.018, alpha=5e-10),
        exactly(copying.sample(random[:5, :1], 3, temperature=0.0), torch.full((5, 3), top)),
    )  # fmt: skip
    if not heads.holds:
        return heads
    built = all_of(*models_of_text(draw), *readers(draw))
    if not built.holds:
        return built
    told, share = next_symbol(draw)
    continued = told.sample(periodic(torch.arange(6), 5), 12, temperature=0.0)
    return all_of(
        reaches(parity_so_far(draw), 0.99, detail="parity so far"),
        reaches(first_symbol(draw), 0.99, detail="first token"),
        reaches(share, 0.99, detail="next token"),
        exactly(continued, periodic(torch.arange(6) + 5, 12)),
        at_most(told.loss(periodic(torch.arange(6), 12)).item(), 0.5),
        heads,
        built,
    )
