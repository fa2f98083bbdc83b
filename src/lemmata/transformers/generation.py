r"""Generation: a model writes on from a prompt, token by token, each drawn from what it foresees."""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.train.evaluation_mode import evaluating
from lemmata.transformers.decoding_step import DecodingStep
from lemmata.transformers.gpt import GPT
from lemmata.transformers.key_value_cache import FixedCache, KeyValueCache

__all__ = ["generate", "next_token_distribution"]

WORTH_RECORDING = 16  # tokens from which a recorded step pays for the few steps that recording takes
ALIGNED = 64  # the kernels of GPUs want masks of such a multiple
LOOK_EVERY = 16  # tokens between two looks at a GPU for whether all rows have ended


def next_token_distribution(
    logits: Float[Tensor, "... vocab_size"],
    temperature: int | float = 1.0,
    top_k: int | None = None,
    top_p: int | float | None = None,
) -> Float[Tensor, "... vocab_size"]:
    r"""The probabilities by which the next token is drawn: tempered, and cut to the likeliest tokens.

    $$ q_i \propto \mathbf 1[i \in S]\; e^{\mu_i/\tau} $$

    Temperature $\tau$ below 1 makes the likely likelier; 0 takes the likeliest token alone. `top_k` keeps the k
    likeliest in $S$ (more where some are equal to the last of them), `top_p` the fewest whose probabilities reach p,
    among what `top_k` has left.

    Shapes:
        logits: (..., vocab_size)    returns: (..., vocab_size), which add up to one

    Source: Fan et al. 2018 (top-k); Holtzman et al. 2020 (top-p).

    >>> logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    >>> next_token_distribution(logits, top_p=0.5)
    tensor([0.5714, 0.4286, 0.0000, 0.0000])
    >>> next_token_distribution(logits, top_k=3, temperature=0.5)
    tensor([0.5517, 0.3103, 0.1379, 0.0000])
    """
    _checked_choices(temperature, top_k, top_p)
    if logits.ndim == 0 or logits.shape[-1] == 0 or not logits.is_floating_point():
        raise ValueError(f"logits must be (..., vocab_size) real numbers, got {logits.dtype} {tuple(logits.shape)}")
    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    # Less the largest, which cancels: however low the temperature, the likeliest has 0 and nothing overflows.
    logits = (logits - logits.amax(-1, keepdim=True)) / max(temperature, torch.finfo(torch.float32).tiny)
    if top_k is not None and top_k < logits.shape[-1]:
        last = logits.topk(top_k).values[..., -1:]  # (..., 1)
        logits = logits.masked_fill(logits < last, -torch.inf)
    chances = logits.softmax(-1)
    if top_p is None or top_p == 1:
        return chances
    ranked, order = chances.sort(dim=-1, descending=True, stable=True)
    enough = ranked.cumsum(-1) - ranked >= top_p  # those before it reach p already; the first is always kept
    chances = chances.masked_fill(torch.zeros_like(enough).scatter(-1, order, enough), 0)
    return chances / chances.sum(-1, keepdim=True)


@system("generation", title="Generation from a prompt", kind="function")
def generate(
    model: GPT,
    prompt: Int[Tensor, "batch time"],
    length: int,
    temperature: int | float = 1.0,
    top_k: int | None = None,
    top_p: int | float | None = None,
    stop: int | Iterable[int] = (),
    generator: torch.Generator | None = None,
    mask: Bool[Tensor, "batch time"] | None = None,
    beams: int = 1,
    length_penalty: int | float = 1.0,
) -> Int[Tensor, "batch written"]:
    r"""Continue prompts by so many tokens, each drawn given all before it; at temperature 0 the likeliest.

    $$ x_{t+1} \sim q(\cdot \mid x_{1:t}) $$

    with q of `next_token_distribution`. A row ends with the first of the tokens `stop`, which is repeated while others
    go on; when all have ended, so does the text. Keys and values are cached, so that each token is read once. Beyond
    the model's `max_length` the last half of what it reads is read anew, and the text goes on from there. On a GPU the
    step is recorded once as a CUDA graph and replayed. Whatever mode the model is in, it writes without dropout.

    Prompts of different lengths are padded on the left: with `mask`, the padding is not seen, and positions are counted
    from each prompt's first token. With `beams` above 1 (and temperature 0) so many texts are followed at once, and
    the one with the largest $\ln p / n^\alpha$ is given, n its tokens and $\alpha$ the `length_penalty`.

    Shapes:
        prompt: (batch, time)    mask: (batch, time), true where there is a token
        returns: (batch, written) what was added, written being at most `length`

    Claims: gpt.model, gpt.in_context

    >>> model = GPT(vocab_size=65, width=32, depth=2, heads=4, max_length=64)
    >>> seeded = torch.Generator().manual_seed(0)
    >>> generate(model, torch.randint(65, (3, 10)), length=20, top_k=10, generator=seeded).shape
    torch.Size([3, 20])
    """
    if prompt.ndim != 2 or 0 in prompt.shape:
        raise ValueError(f"prompt must be (batch, time) with at least 1 token, got shape {tuple(prompt.shape)}")
    prompt = validate.tokens("prompt", prompt, model.vocab_size)
    prompt = prompt.to(torch.promote_types(prompt.dtype, torch.int32))  # in fewer bits not every token has a number
    validate.count("length", length)
    _checked_choices(temperature, top_k, top_p)
    ends = torch.tensor([stop] if isinstance(stop, int) else [*stop], dtype=prompt.dtype)
    ends = validate.tokens("stop", ends, model.vocab_size).to(prompt.device)
    ended = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)
    if mask is not None:
        mask = torch.cat([_left_padded(mask, prompt), mask.new_ones(len(prompt), length)], 1)  # (batch, time + length)
    if validate.count("beams", beams) > 1:
        if temperature != 0:
            raise ValueError(f"beams={beams} follows the likeliest texts and draws none: say temperature=0")
        validate.finite_number("length_penalty", length_penalty)
        with evaluating(model):
            return _beam_search(model, prompt, length, beams, length_penalty, ends, mask)
    start = prompt.shape[1]
    text = torch.cat([prompt, prompt.new_empty(len(prompt), length)], 1)  # (batch, time + length)
    with evaluating(model):
        reader = _Reader(model, start + length - 1, mask)
        for place in range(start, start + length):
            logits = reader.read(text[:, :place])  # (batch, vocab_size)
            if temperature == 0:
                token = logits.argmax(-1)  # (batch,)
            else:
                chances = next_token_distribution(logits.float(), temperature, top_k, top_p)
                token = torch.multinomial(chances, 1, generator=generator)[:, 0]
            if len(ends):
                token = torch.where(ended, text[:, place - 1], token)
                ended = ended | torch.isin(token, ends)
            text[:, place] = token
            looked = text.device.type == "cpu" or place % LOOK_EVERY == 0  # a look at a GPU makes all wait for it
            if len(ends) and looked and bool(ended.all()):
                break
    written = text[:, start : place + 1]  # type: ignore[possibly-undefined] - length is at least 1
    return until_all_have_ended(written, ends) if len(ends) else written


def until_all_have_ended(
    written: Int[Tensor, "batch written"], ends: Int[Tensor, " ends"]
) -> Int[Tensor, "batch shorter"]:
    """Without what was written after the last row has ended, before anybody looked."""
    going_on = (torch.isin(written, ends).cumsum(1) == 0).any(0)  # (written,): a row has not ended yet
    return written[:, : int(going_on.sum()) + 1]


def _checked_choices(temperature: int | float, top_k: int | None, top_p: int | float | None) -> None:
    validate.number("temperature", temperature, least=0)
    if top_k is not None:
        validate.count("top_k", top_k)
    if top_p is not None:
        validate.number("top_p", top_p, above=0, most=1)


def _left_padded(mask: Tensor, prompt: Tensor) -> Tensor:
    """A mask of prompts that have their padding before them, if any."""
    if mask.dtype is not torch.bool:
        raise TypeError(f"mask must be boolean, true where there is a token, got {mask.dtype}: use mask.bool()")
    if mask.shape != prompt.shape:
        raise ValueError(f"mask must have the shape of prompt, {tuple(prompt.shape)}, got {tuple(mask.shape)}")
    if not bool((mask[:, 1:] >= mask[:, :-1]).all() & mask[:, -1].all()):
        raise ValueError("mask must be true from the first token of each prompt to its end: pad prompts on the left")
    return mask.to(prompt.device)


def seen_tokens(mask: Bool[Tensor, "batch keys"], asking: int) -> tuple[Tensor, Tensor]:
    """Of tokens behind a mask: what the last of them may look at, (batch, asking, keys), and where they stand.

    >>> seen, positions = seen_tokens(torch.tensor([[False, True, True]]), asking=2)
    >>> seen.shape, positions
    (torch.Size([1, 2, 3]), tensor([[0, 1]]))
    """
    positions = (mask.cumsum(1) - 1).clamp(min=0)  # (batch, keys)
    return mask[:, None].expand(-1, asking, -1), positions[:, -asking:]


def _beam_search(
    model: GPT, prompt: Tensor, length: int, beams: int, penalty: float, ends: Tensor, mask: Tensor | None
) -> Tensor:
    """The best of so many texts that are followed at once, by the logarithm of their probability for each token.

    A text that ends among the best `beams` candidates is put aside; a row is done when no open text can overtake the
    worst of those that were put aside, as far as its score so far tells.
    """
    batch, start = prompt.shape
    if start + length - 1 > model.config.max_length:
        told = f"got {start} + {length} with beams={beams}: ask for fewer, or cut the prompt"
        raise ValueError(f"prompt and length may have at most {model.config.max_length + 1} tokens together, {told}")
    reader = _Reader(model, start + length - 1, mask, recorded=False)
    steps = _log_probabilities(reader.read(prompt))[:, None].expand(-1, beams, -1)  # (batch, beams, vocab_size)
    reader.choose(torch.arange(batch, device=prompt.device).repeat_interleave(beams))
    text = prompt[:, None].expand(-1, beams, -1)  # (batch, beams, time)
    total = steps.new_full((batch, beams), -torch.inf)
    total[:, 0] = 0  # all beams begin alike: one of them is enough
    best, score = prompt.new_zeros(batch, beams, length), torch.full_like(total, -torch.inf)  # of those put aside
    kept = min(max(2, 1 + len(ends)), steps.shape[-1]) * beams  # so that enough of them go on, whichever end
    for written in range(1, length + 1):
        values, ranked = (total[..., None] + steps).flatten(1).topk(kept)  # (batch, kept)
        parent, token = ranked // steps.shape[-1], ranked % steps.shape[-1]
        texts = torch.cat([_of_beams(text, parent), token[..., None].to(text.dtype)], -1)  # (batch, kept, time)
        over = torch.isin(token, ends) | (written == length)
        scores = (values / written**penalty).masked_fill(~over, -torch.inf)[:, :beams]
        filled = texts[:, :beams, -1:].expand(-1, -1, length - written)  # what ended repeats its end
        added = torch.cat([texts[:, :beams, start:], filled], -1)  # (batch, beams, length)
        # What was put aside is decided on in rows where no open text can overtake it.
        done = score[:, -1:] >= total[:, :1] / max(written - 1, 1) ** penalty
        score, chosen = torch.cat([score, scores.masked_fill(done, -torch.inf)], 1).topk(beams)
        best = _of_beams(torch.cat([best, added], 1), chosen)
        total, chosen = values.masked_fill(over, -torch.inf).topk(beams)
        if written == length or bool((score[:, -1] >= total[:, 0] / written**penalty).all()):
            break
        text, parent = _of_beams(texts, chosen), parent.gather(1, chosen)
        reader.choose((parent + beams * torch.arange(batch, device=parent.device)[:, None]).flatten())
        steps = _log_probabilities(reader.read(text.flatten(0, 1))).view(batch, beams, -1)
    return until_all_have_ended(best[:, 0], ends) if len(ends) else best[:, 0]


def _log_probabilities(logits: Tensor) -> Tensor:
    return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)


def _of_beams(texts: Tensor, chosen: Tensor) -> Tensor:
    """These of the texts (batch, beams, time) of each row."""
    return texts.gather(1, chosen[..., None].expand(-1, -1, texts.shape[-1]))


class _Reader:
    """Reads a text that grows by one token at a time, and foresees the next one."""

    def __init__(self, model: GPT, longest: int, mask: Tensor | None = None, recorded: bool = True) -> None:
        self.model, self.room, self.mask = model, min(longest, model.config.max_length), mask
        self.recorded = recorded
        self.caches: list[KeyValueCache] = []
        self.read_so_far = 0
        self.step: Callable[..., Tensor] | None = None

    def read(self, text: Int[Tensor, "batch time"]) -> Float[Tensor, "batch vocab_size"]:
        """The logits of what comes next."""
        place = text.shape[1]
        if self.step is not None and self.read_so_far < self.room:
            self.read_so_far += 1
            return self.step(text[:, -1:], *self._visible_positions(place, 1))
        first, most = self.step is None, self.model.config.max_length
        text = text[:, -(most if first else max(most // 2, 1)) :]
        self.read_so_far = text.shape[1]
        self.caches = caches = self.model.new_caches(-(-self.room // ALIGNED) * ALIGNED)
        words = dict(zip(("mask", "positions"), self._visible_positions(place, self.read_so_far), strict=False))
        known = self.model.hidden(text, caches=caches, **words)[:, -1]  # (batch, width)
        if self.mask is not None:
            self.step = lambda token, mask, positions: self.model(token, mask, caches, positions)[:, -1]
        elif self.recorded and text.device.type == "cuda" and self.room - self.read_so_far >= WORTH_RECORDING:
            self.step = RecordedStep(self.model, caches)
        elif text.device.type == "cpu" and DecodingStep.suited(self.model):
            self.step = DecodingStep(self.model, caches)
        else:
            self.step = lambda token: self.model(token, caches=caches)[:, -1]
        return self.model.logits_of(known)

    def choose(self, rows: Int[Tensor, " rows"]) -> None:
        """Go on with these rows of the batch, in this order."""
        for cache in self.caches:
            cache.reorder(rows)
        self.mask = self.mask if self.mask is None else self.mask[rows]

    def _visible_positions(self, place: int, asking: int) -> tuple[Tensor, Tensor] | tuple[()]:
        """What the last tokens before a place may see of all that is kept, and their positions; nothing if all is."""
        return () if self.mask is None else seen_tokens(self.mask[:, place - self.read_so_far : place], asking)


class RecordedStep:
    """One step of a model as a CUDA graph: hundreds of small kernels are launched at once instead of one by one.

    A graph repeats the same reads and writes, so the place of the token is a number on the device, and attention goes
    over the whole cache under a mask that hides what has not come yet. Elsewhere than on a GPU the same step is
    computed without a recording.
    """

    def __init__(self, model: GPT, caches: list[KeyValueCache]) -> None:
        keys = caches[0].buffers()[0]  # (batch, heads, max_length, head_width)
        self.model, place = model, keys.device
        self.place = torch.tensor([len(caches[0])], device=place)
        self.token = torch.zeros(len(keys), 1, dtype=torch.long, device=place)
        self.places = torch.arange(keys.shape[2], device=place)
        self.caches = [FixedCache(cache, self.place) for cache in caches]
        self.graph: torch.cuda.CUDAGraph | None = None
        if place.type == "cuda":
            self._record_graph()

    def __call__(self, token: Int[Tensor, "batch 1"]) -> Float[Tensor, "batch vocab_size"]:
        self.token.copy_(token)
        if self.graph is None:
            self.logits = self._next_logits()
        else:
            self.graph.replay()
        self.place += 1
        return self.logits

    def _next_logits(self) -> Tensor:
        mask = (self.places <= self.place).expand(len(self.token), 1, -1)  # (batch, 1, max_length)
        return self.model(self.token, mask, self.caches)[:, -1]  # (batch, vocab_size)

    def _record_graph(self) -> None:
        # What the kernels need at their first call must not be part of the recording. The steps tried here write to
        # the place of the token that comes, which is written again when it comes.
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(2):
                self._next_logits()
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.logits = self._next_logits()
