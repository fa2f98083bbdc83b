"""BERT fine-tuned: answers as the best of all spans, tags that depend on the context, a class from the first token."""

import itertools

import torch
from torch.nn import functional

from lemmata.data.sentences import homographs, negation
from lemmata.judge import all_of, claim, close, exactly, lie, reaches
from lemmata.transformers.fine_tuned import SentenceClassifier
from lemmata.transformers.question_answering import QuestionAnswerer, best_span, passage_mask
from lemmata.transformers.tagging import Tagger

SMALL = {"width": 32, "depth": 2, "heads": 4, "hidden": 64, "max_length": 32, "dropout": 0.0, "attention_dropout": 0.0}


def in_float64(draw, model):
    """A model whose weights are all drawn, its biases too."""
    model = model.double().eval().requires_grad_(False)
    for values in model.parameters():
        values.copy_(draw.normal(*values.shape) / (values.shape[-1] ** 0.5 if values.ndim > 1 else 1.0))
    return model


# --- Answers ---


def inside(passage):
    return passage


def up_to_the_end(passage):
    """The [SEP] after the passage too."""
    return passage | passage.roll(1, 1)


def anywhere(passage):
    return torch.ones_like(passage)


def in_order(i, j):
    return i <= j


def in_any_order(i, j):
    """The best start and the best end, each by itself."""
    return True


@claim("bert.finetune.qa")
@lie("the best start and the best end make the best span", order=in_any_order)
@lie("the question's words may answer it", allowed=anywhere)
@lie("the [SEP] that ends the passage may answer it", allowed=up_to_the_end)
@lie("the start decides alone", weight=0.0)
@lie("the two logits come without a bias", bias=0.0)
def the_answer_is_the_best_span(draw, weight=1.0, bias=1.0, order=in_order, allowed=inside, answerer=QuestionAnswerer):
    """Logits against the formula, and spans against all pairs of places, in passages of many lengths."""
    time, batch = 16, 400
    model = in_float64(draw, answerer(30, **SMALL))
    x, place, question = draw.integers(0, 30, batch, time), torch.arange(time), draw.integers(1, 6, batch, 1)
    begin = question + 2  # behind [CLS], the question and [SEP]
    end = begin + 1 + (draw.uniform(batch, 1) * (time - 1 - begin)).long()  # the place of the last [SEP]
    passage, mask = (place >= begin) & (place < end), place <= end
    segments = (mask & (place >= begin)).long()
    logits = torch.stack(model(x, segments, mask), -1)
    h = model.encoder(x, segments, mask).tokens
    formula = h @ model.classifier.weight.T + bias * model.classifier.bias
    # Drawn logits too: a network without training says nearly the same of all places.
    first, last = torch.cat([logits, 3 * draw.normal(2 * batch, time, 2)]).unbind(-1)
    found = best_span(first, last, passage_mask(segments, mask).repeat(3, 1))
    pairs = torch.tensor([order(i, j) for i, j in itertools.product(range(time), repeat=2)])
    sums, within = first[:, :, None] + weight * last[:, None], allowed(passage).repeat(3, 1)  # (passages, time, time)
    spans = pairs.view(time, time) & within[:, :, None] & within[:, None]
    best = sums.masked_fill(~spans, -torch.inf).flatten(1).argmax(1)
    answered = model.answer(x, segments, mask)
    return all_of(
        close(logits, formula, ulps=256, scale=10.0),
        exactly(torch.stack([found.start, found.end]), torch.stack([best // time, best % time])),
        exactly(torch.stack(answered[:2]), torch.stack([found.start, found.end])[:, :batch]),
    )


# --- Tags ---


def tagger():
    data = homographs(n=2, test=2)
    return Tagger(len(data.extra["vocabulary"]), data.classes, **SMALL)


def classifier():
    data = negation(n=2, test=2)
    return SentenceClassifier(len(data.extra["vocabulary"]), data.classes, **SMALL)


def fine_tune(model, generator, steps):
    """Every weight learns from the sentences made by rule."""
    data = homographs(test=2) if isinstance(model, Tagger) else negation(test=2)
    for values in model.parameters():
        if values.ndim > 1:  # so narrow a network begins with larger weights, or would long stay where it is
            values.data.mul_(5.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.02, total_iters=30)
    for _ in range(steps):
        batch = data.train[torch.randint(len(data.train), (32,), generator=generator)]
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(batch.x, mask=batch.x != 0).movedim(-1, 1), batch.y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warm.step()


def in_context(model, x):
    return model(x, mask=x != 0).argmax(-1)


def word_by_word(model, x):
    """Each word as a sentence of its own: what it says of a word without context."""
    return model(x.reshape(-1, 1)).argmax(-1).reshape(x.shape)


def same_everywhere(weight, place):
    return weight


def one_for_each_place(weight, place):
    return weight.roll(place, 0)


@claim("bert.finetune.pos")
@lie("a word has its tag without its context", read=word_by_word)
@lie("the classifier has no bias", bias=0.0)
@lie("every place has a classifier of its own", shared=one_for_each_place)
def a_shared_classifier_tags_words_in_their_context(
    draw, bias=1.0, read=in_context, shared=same_everywhere, model=Tagger
):
    """The formula at every place; after training, words that are noun or verb, against the best tag of each word."""
    drawn = in_float64(draw, model(30, classes=5, **SMALL))
    x, mask = draw.integers(0, 30, 20, 12), torch.arange(12) < draw.integers(1, 13, 20, 1)
    h = drawn.encoder(x, mask=mask).tokens
    weights = torch.stack([shared(drawn.classifier.weight, place) for place in range(12)])  # (places, tags, width)
    logits = torch.einsum("btw,tkw->btk", h, weights) + bias * drawn.classifier.bias
    formula = close(drawn(x, mask=mask).softmax(-1), logits.softmax(-1), ulps=1024, scale=10.0)
    if not formula.holds:
        return formula  # decided without training
    test = homographs(n=2, seed=draw.seed + 1).test
    ambiguous = torch.isin(test.x, torch.tensor(homographs(n=2, test=2).extra["ambiguous"]))
    with torch.no_grad():
        right = (read(draw.trained(tagger, fine_tune, steps=150), test.x) == test.y)[ambiguous]
    tags = functional.one_hot(test.y[ambiguous], 3)
    counts = torch.zeros(int(test.x.max()) + 1, 3).long().index_add_(0, test.x[ambiguous], tags)
    by_word = counts.amax(1).sum() / counts.sum()  # no rule that sees the word alone does better
    return all_of(
        reaches(right.double().mean(), 0.97, detail="of the words that are noun or verb, tagged rightly"),
        reaches(by_word, 0.8, at_most=True, detail="the same by the word alone, with the best tag of each"),
        formula,
    )


# --- Sentences ---


def first_token(h):
    return h[:, 0]


def mean_of_tokens(h):
    return h.mean(1)


def every_weight(model):
    return model.requires_grad_(True)


def the_classifier_alone(model):
    model.classifier.requires_grad_(True)
    return model


@claim("bert.finetune.sentiment")
@lie("the mean of all tokens is what is classified", pooled=mean_of_tokens)
@lie("the first token is classified as it is", phi=torch.nn.Identity())
@lie("the encoder stays as it was", learns=the_classifier_alone)
@lie("the classifier has no bias", bias=0.0)
def the_first_token_classifies_the_sentence(
    draw, bias=1.0, learns=every_weight, pooled=first_token, phi=torch.tanh, model=SentenceClassifier
):
    """The formula, gradients of every weight, and reviews with negations after training."""
    drawn = in_float64(draw, model(30, classes=2, **SMALL))
    x, y = draw.integers(0, 30, 50, 12), draw.integers(0, 2, 50)
    encoder = drawn.encoder
    pool, h = encoder.get_submodule("pool"), pooled(encoder(x).tokens)
    formula = close(
        drawn(x), phi(pool(h)) @ drawn.classifier.weight.T + bias * drawn.classifier.bias, ulps=256, scale=10.0
    )
    functional.cross_entropy(learns(drawn)(x), y).backward()
    gradients = [values.grad for values in encoder.parameters()]
    moved = torch.tensor([values is not None and float(values.abs().max()) > 1e-9 for values in gradients])
    everything = exactly(moved, torch.ones_like(moved), detail="tensors of the encoder that have a gradient")
    if not (formula.holds and everything.holds):
        return all_of(formula, everything)  # decided without training
    test = negation(n=2, seed=draw.seed + 1).test
    with torch.no_grad():
        right = in_context(draw.trained(classifier, fine_tune, steps=150), test.x) == test.y
    return all_of(reaches(right.double().mean(), 0.95, detail="reviews told rightly"), formula, everything)
