"""BERT: what it computes, the two tasks it is taught, and what it is to see both sides of a hidden token."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional

from lemmata.judge import ALPHA, all_of, always, claim, close, exactly, law_is, lie, probability_is, reaches
from lemmata.recurrent.bidirectional import Bidirectional
from lemmata.recurrent.gru import GRU
from lemmata.transformers.bert import Bert
from lemmata.transformers.bert_pretraining import BertForPretraining
from lemmata.transformers.masking import mask_tokens
from lemmata.transformers.sentence_pairs import draw_pairs, join_pairs

CLS, SEP, MASK = 1, 2, 3
TINY = {"width": 32, "heads": 2, "hidden": 64, "max_length": 16, "dropout": 0.0, "attention_dropout": 0.0}


def random_model(draw, vocab_size=40):
    """A small BERT in float64 whose biases, norms and heads are random too."""
    model = BertForPretraining(vocab_size, depth=2, dtype=torch.float64, **TINY)
    for values in model.parameters():
        values.data.add_(0.3 * draw.normal(*values.shape))
    return model


# --- what it computes ---


def everywhere(time):
    return torch.zeros(time, time, dtype=torch.bool)


def ahead(time):
    return torch.ones(time, time, dtype=torch.bool).triu(1)


def written_out(pairs):
    """[CLS] A [SEP] B [SEP] of each pair, its segments, and where there is a token: (pairs, time) each."""
    rows = [[torch.tensor([CLS, *a, SEP, *b, SEP]), torch.arange(len(a) + len(b) + 3) > len(a) + 1] for a, b in pairs]
    x, segments = (nn.utils.rnn.pad_sequence(list(column), batch_first=True) for column in zip(*rows, strict=True))
    return x, segments.long(), x != 0


def early(pairs, *tokens):
    """Pairs whose second segment begins with the [SEP] before B."""
    joined = join_pairs(pairs, *tokens)
    second = functional.pad(joined.segments, (0, 1))[:, 1:] | joined.segments
    return joined._replace(segments=second)


def by_torch(encoder, written, segment, place, hidden_from):
    """Tokens and sentence from torch's own encoder layers with the same weights."""
    x, segments, mask = written
    h = functional.one_hot(x, encoder.vocab_size).double() @ encoder.tokens.weight
    h = h + encoder.positions.weight[: h.shape[1]] + segment * encoder.segments.weight[segments]
    h = encoder.norm(h)
    for block in encoder.blocks:
        layer = nn.TransformerEncoderLayer(
            32, 2, 64, 0.0, "gelu", encoder.config.eps, batch_first=True, dtype=torch.float64
        )
        own = (block.self_attention.project, block.self_attention.join, block.self_attention_norm)
        own += (block.feed_forward.expand, block.feed_forward.contract, block.feed_forward_norm)
        values = dict(zip(("in_proj_", "out_proj.", "norm1.", "linear1.", "linear2.", "norm2."), own, strict=True))
        for name, parameter in layer.named_parameters():
            ours = next(part for start, part in values.items() if name.removeprefix("self_attn.").startswith(start))
            parameter.data = getattr(ours, "weight" if name.endswith("weight") else "bias").data
        h = layer(h, src_mask=hidden_from(h.shape[1]), src_key_padding_mask=~mask)
    return h[mask], encoder.pool(h[:, place]).tanh()


@claim("bert.model")
@lie("segments do not enter", segment=0.0)
@lie("a token sees those before it alone", hidden_from=ahead)
@lie("the sentence is read off its last place", place=-1)
@lie("the second segment begins with the [SEP] before B", join=early)
@lie("the loss is that of the masked tokens alone", second=0.0)
@lie("the pooler is not counted", count=108_891_648)
def an_encoder_of_pairs(
    draw, segment=1.0, hidden_from=everywhere, place=0, join=join_pairs, second=1.0, count=109_482_240
):
    """Against torch's encoder layers; the loss against both tasks of one batch; the size of BERT-base."""
    model = random_model(draw)
    sentences = [draw.integers(5, 40, n).tolist() for n in (1, 6, 4, 2, 3, 5)]
    couples = [*zip(sentences[:3], sentences[3:], strict=True)]
    pairs = join(couples, CLS, SEP)
    tokens, pooled = model.encoder(*pairs[:3])
    expected = by_torch(model.encoder, written_out(couples), segment, place, hidden_from)
    x, targets = mask_tokens(pairs.x, 40, MASK, [0, CLS, SEP], fraction=0.5, generator=draw.generator)
    targets[0, 1] = pairs.x[0, 1]  # at least one is chosen
    follows = torch.tensor([True, False, True])
    logits, following = model(x, *pairs[1:3])
    masked = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss = masked + second * functional.cross_entropy(following, (~follows).long())
    return all_of(
        close(torch.cat([tokens[pairs.mask].flatten(), pooled.flatten()]), torch.cat([e.flatten() for e in expected])),
        close(model.losses(x, targets, pairs.segments, pairs.mask, follows)["loss"], loss),
        exactly(sum(values.numel() for values in Bert(device="meta").parameters()), count),
    )


# --- hidden tokens ---


def at_chosen(targets):
    return targets != -100


def at_all(targets):
    return torch.ones_like(targets, dtype=torch.bool)


def evenly(token, vocab_size):
    """The share of tokens up to this one, if all are as likely."""
    return (token + 1) / vocab_size


def by_rank(token, vocab_size):
    """The same if a token is as frequent as in a language: one over its rank, by Zipf."""
    return (token + 2).log() / math.log(vocab_size + 1)


@claim("bert.mlm")
@lie("what is done to the chosen tokens is done to all", fraction=1.0)
@lie("every chosen token becomes [MASK]", hidden=1.0)
@lie("no token is replaced by another", replaced=0.0)
@lie("a token is replaced by frequent tokens more often", law=by_rank)
@lie("the loss is that of all tokens", asked=at_all)
def most_chosen_tokens_are_hidden(draw, fraction=0.15, hidden=0.8, replaced=0.1, asked=at_chosen, law=evenly):
    """How often a token is hidden, replaced and kept; what is asked; and the loss at these places alone."""
    vocab_size = 30_000

    def fates(n):
        x = torch.randint(5, vocab_size, (n,), generator=draw.generator)
        read, targets = mask_tokens(x, vocab_size, MASK, generator=draw.generator)
        return x, read, targets != -100

    def is_hidden(n):
        return fates(n)[1] == MASK

    def is_replaced(n):
        x, read, _ = fates(n)
        return (read != x) & (read != MASK)

    def is_kept(n):
        x, read, chosen = fates(n)
        return chosen & (read == x)

    def put_instead(n):
        words = {"fraction": 1.0, "hidden": 0.0, "replaced": 1.0, "generator": draw.generator}
        return mask_tokens(torch.full((n,), 5), vocab_size, MASK, **words).x

    model = random_model(draw)
    x = draw.integers(0, 40, 4, 12)
    read, targets = mask_tokens(x, 40, MASK, [0, CLS, SEP], fraction=0.5, generator=draw.generator)
    where = asked(targets)
    loss = functional.cross_entropy(model(read, torch.zeros_like(x)).tokens[where], x[where])
    special = torch.isin(x, torch.tensor([0, CLS, SEP]))
    # A random token is by chance the true one or [MASK] in one of 15,000 cases, far below what can be noticed here.
    return all_of(
        probability_is(is_hidden, fraction * hidden, effect=0.0025, alpha=ALPHA / 4),
        probability_is(is_replaced, fraction * replaced, effect=0.0025, alpha=ALPHA / 4),
        probability_is(is_kept, fraction * (1 - hidden - replaced), effect=0.0025, alpha=ALPHA / 4),
        law_is(put_instead, lambda k: law(k.floor(), vocab_size).clamp(0, 1), effect=0.05, alpha=ALPHA / 4),
        always((targets == -100)[special] & (read == x)[special], detail="special tokens are left alone"),
        close(model.losses(read, targets, follows=torch.ones(4, dtype=torch.bool))["masked_language"], loss),
    )


# --- both sides ---

SYMBOLS = 8


class Recurrent(nn.Module):
    """Tokens read by a recurrent network, and named at each place."""

    def __init__(self, both):
        super().__init__()
        self.tokens = nn.Embedding(SYMBOLS + 1, 32)
        self.layer = Bidirectional(GRU(32, 32), GRU(32, 32)) if both else GRU(32, 32)
        self.name = nn.Linear(64 if both else 32, SYMBOLS + 1)

    def forward(self, x):
        return self.name(self.layer(self.tokens(x))[0])


class Encoder(nn.Module):
    """BERT, or with `back` one whose tokens see those before them alone."""

    def __init__(self, back):
        super().__init__()
        self.bert, self.back = BertForPretraining(SYMBOLS + 1, next_sentence=False, depth=1, **TINY), back

    def forward(self, x):
        mask = ~ahead(x.shape[1]).expand(len(x), -1, -1) if self.back else None
        return self.bert(x, mask=mask).tokens


def reader(kind):
    return Encoder(kind == "looking back") if kind in ("encoder", "looking back") else Recurrent(kind == "both ways")


def cloze(count, generator):
    """Texts of pairs, whose second symbol is any and says which is the first; one first symbol is hidden."""
    second = torch.randint(SYMBOLS, (count, 4), generator=generator)
    x = torch.stack([(3 * second + 1) % SYMBOLS, second], 2).flatten(1)  # (count, 8)
    place = 2 * torch.randint(4, (count, 1), generator=generator)
    return x.scatter(1, place, SYMBOLS), place, x.gather(1, place).flatten()


def teach_cloze(model, generator, steps=300):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        x, place, hidden = cloze(64, generator)
        optimizer.zero_grad()
        functional.cross_entropy(model(x)[torch.arange(len(x)), place[:, 0]], hidden).backward()
        optimizer.step()


def named(model, generator, count=2000):
    """The fraction of hidden symbols that a model names."""
    x, place, hidden = cloze(count, generator)
    with torch.no_grad():
        return (model(x)[torch.arange(count), place[:, 0]].argmax(1) == hidden).double().mean()


@claim("bert.bidirectional")
@lie("an encoder that looks back only does as well", encoder="looking back")
@lie("a left-to-right network does as well", one_side=False)
@lie("two recurrent networks, one for each direction, do no better than one", both_sides=True)
def the_hidden_token_is_told_by_what_follows(draw, encoder="encoder", one_side=True, both_sides=False):
    """A hidden symbol that its right neighbour determines: named by what sees both sides, guessed by what does not."""
    names = {"encoder": encoder, "left to right": "left to right", "both ways": "both ways"}
    score = {who: named(draw.trained(reader, teach_cloze, kind=kind), draw.generator) for who, kind in names.items()}
    # Guessing names one of eight; with 2,000 texts 0.2 is ten standard deviations above.
    return all_of(
        reaches(score["encoder"], 0.95),
        reaches(score["left to right"], 0.2, at_most=one_side, detail="one symbol of eight by guessing"),
        reaches(score["both ways"], 0.95, at_most=both_sides),
    )


# --- pairs of sentences ---


def first_place(h):
    return h[:, 0]


def last_place(h):
    return h[:, -1]


def mean_place(h):
    return h.mean(1)


def first_of_another(documents, count, *tokens, generator):
    """Pairs whose random sentence is always the first of the next document."""
    pairs = draw_pairs(documents, count, *tokens, generator=generator)
    begins = torch.tensor([sentences[0][0] for sentences in documents])
    following = torch.searchsorted(begins, pairs.x[:, 1].contiguous(), right=True) % len(begins)
    pairs.x[:, 3] = torch.where(pairs.follows, pairs.x[:, 3], begins[following])  # type: ignore
    return pairs


def topics(generator, words=6):
    """Two documents of 30 sentences of three words, each with a vocabulary of its own."""
    drawn = torch.randint(words, (2, 30, 3), generator=generator) + torch.tensor([4, 4 + words])[:, None, None]
    return drawn.tolist()


def small_bert(vocab_size):
    """BERT draws its first weights for a width of 768; these fit 32."""
    model = BertForPretraining(vocab_size, depth=2, **TINY)
    for values in model.parameters():
        if values.ndim > 1:
            nn.init.normal_(values, std=32**-0.5)
    return model


def teach_both(model, generator, steps=200):
    """Masked tokens and pairs together, as BERT is taught."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        pairs = draw_pairs(topics(generator), 64, CLS, SEP, generator=generator)
        x, targets = mask_tokens(pairs.x, 16, MASK, [0, CLS, SEP], generator=generator)
        optimizer.zero_grad()
        model.losses(x, targets, *pairs[1:])["loss"].backward()
        optimizer.step()


@claim("bert.nsp")
@lie("a third of the pairs are neighbours", fraction=1 / 3)
@lie("the answer is read off the last token", summary=last_place)
@lie("the answer is read off the mean of the tokens", summary=mean_place)
@lie("the random sentence is always the first of a document", pairs=first_of_another)
def neighbours_are_told_from_strangers(draw, fraction=0.5, summary=first_place, pairs=draw_pairs):
    """How pairs are drawn, from which token they are judged, and what a small BERT learns of two topics."""
    ends = torch.tensor([20, 30, 50, 57])  # four documents of sentences of one word each, all different
    corpus = [[[10 + k] for k in range(a, b)] for a, b in zip([0, *ends.tolist()], ends.tolist(), strict=False)]

    def neighbours(n):
        return pairs(corpus, n, CLS, SEP, generator=draw.generator).follows

    drawn = pairs(corpus, 25_000, CLS, SEP, generator=draw.generator)
    first, second = drawn.x[:, 1] - 10, drawn.x[:, 3] - 10
    home, place = (torch.searchsorted(ends, each, right=True) for each in (first, second))
    right = torch.where(drawn.follows, (second == first + 1) & (home == place), home != place)
    layout = (drawn.x[:, [0, 2, 4]] == torch.tensor([CLS, SEP, SEP])).all(1)
    # Any sentence of other documents: its number among them, with a random digit behind, in parts of how many they are.
    sizes = ends.diff(prepend=torch.tensor([0]))[home]
    number = second - torch.where(second > first, sizes, 0) + draw.uniform(len(second))
    strangers = (number / (57 - sizes))[~drawn.follows]
    model = random_model(draw, 70)
    some = [column[:50] for column in drawn[:3]]
    expected = model.next_sentence(model.encoder.pool(summary(model.encoder(*some).tokens)).tanh())  # type: ignore
    taught = draw.trained(small_bert, teach_both, vocab_size=16)
    fresh = draw_pairs(topics(draw.generator), 1000, CLS, SEP, generator=draw.generator)
    with torch.no_grad():
        told = taught(*fresh[:3]).next_sentence.argmax(1) == 0
    return all_of(
        probability_is(neighbours, fraction, effect=0.015, alpha=5e-10),
        always(right & layout, detail="the sentence after A, or one of another document"),
        law_is(lambda n: strangers[:n], lambda u: u.clamp(0, 1), effect=0.1, alpha=5e-10),
        close(model(*some).next_sentence, expected),
        reaches((told == fresh.follows).double().mean(), 0.9, detail="of 1,000 pairs in two topics"),
    )


def teach_mixed(model, generator, steps=200):
    """As `teach_both`, on texts of the same words without topics: every word is any word."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        pairs = draw_pairs(topics(generator), 64, CLS, SEP, generator=generator)
        words = torch.randint(4, 16, pairs.x.shape, generator=generator)
        mixed = torch.where(pairs.x >= 4, words, pairs.x)
        x, targets = mask_tokens(mixed, 16, MASK, [0, CLS, SEP], generator=generator)
        optimizer.zero_grad()
        model.losses(x, targets, *pairs[1:])["loss"].backward()
        optimizer.step()


def several_berts(vocab_size, count=3):
    return nn.ModuleList(small_bert(vocab_size) for _ in range(count))  # one differs much from the next


def teach_several(models, generator):
    for model in models:
        teach_mixed(model, generator)


def of_two_topics(count, generator, words=6):
    """Sentences of three words, and which topic they are of."""
    y = torch.arange(count) % 2
    x = torch.randint(words, (count, 3), generator=generator) + 4 + words * y[:, None]
    return functional.pad(functional.pad(x, (1, 0), value=CLS), (0, 1), value=SEP), y


def fine_tuned(draw, model, labels, steps=40):
    """The accuracy that a copy of an encoder and a new layer reach on new sentences, from so many labelled ones."""
    encoder, last = copy.deepcopy(model.encoder).train(), nn.Linear(32, 2)
    optimizer = torch.optim.Adam([*encoder.parameters(), *last.parameters()], lr=2e-3)
    (x, y), (new, right) = (of_two_topics(count, draw.generator) for count in (labels, 400))
    for _ in range(steps):
        optimizer.zero_grad()
        functional.cross_entropy(last(encoder(x, torch.zeros_like(x)).tokens.mean(1)), y).backward()
        optimizer.step()
    with torch.no_grad():
        return (last(encoder(new, torch.zeros_like(new)).tokens.mean(1)).argmax(1) == right).double().mean()


@claim("bert.pretraining_gain")
@lie("the gain comes from any text of the same words", taught=teach_mixed)
@lie("the encoder from scratch does as well with few labels", few=64)
@lie("the gain stays when there are many labels", many=2)
def pretraining_pays_when_labels_are_few(draw, taught=teach_both, few=2, many=64):
    """Sentences of two topics: an encoder that has read unlabelled pairs, one that has read words alone, a new one."""
    encoders = {
        "read": [draw.trained(small_bert, taught, vocab_size=16)],
        "words": draw.trained(several_berts, teach_several, vocab_size=16),
        "new": several_berts(16, 12),
    }
    reached = {
        name: torch.stack([fine_tuned(draw, each, few) for each in several for _ in range(24 // len(several))]).mean()
        for name, several in encoders.items()
    }
    at_last = {name: fine_tuned(draw, encoders[name][0], many) for name in ("read", "new")}
    return all_of(
        reaches(reached["read"], 0.99, detail="with few labels"),
        reaches(reached["new"], 0.97, at_most=True, detail="from scratch, with few labels"),
        reaches(reached["words"], 0.97, at_most=True, detail="having read words without topics, with few labels"),
        reaches(at_last["read"] - at_last["new"], 0.05, at_most=True, detail="gain with many labels"),
        reaches(at_last["new"], 0.95, detail="from scratch, with many labels"),
    )  # fmt: skip
