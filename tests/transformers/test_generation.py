"""Generation: caches and recorded steps change nothing, truncation is that of the field, and bad input is answered."""

import pytest
import torch

from lemmata.transformers.generation import (
    RecordedStep,
    generate,
    next_token_distribution,
    until_all_have_ended,
)
from lemmata.transformers.gpt import GPT
from transformers import GPT2LMHeadModel, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper


def model(max_length=16, **words):
    torch.manual_seed(0)
    made = GPT(vocab_size=20, width=16, depth=2, heads=2, max_length=max_length, dtype=torch.float64, **words)
    for values in made.parameters():
        values.data.mul_(8.0)  # so that what is foreseen depends on what was read
    return made


PROMPT = torch.randint(20, (3, 4), generator=torch.Generator().manual_seed(1))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


# --- Which token ---


@pytest.mark.parametrize("top_k", [None, 1, 3, 20, 100])
@pytest.mark.parametrize("top_p", [None, 0.01, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 3.0])
def test_truncation_is_that_of_hugging_face(temperature, top_k, top_p):
    logits = 2 * torch.randn(50, 20, generator=seeded(), dtype=torch.float64)
    theirs = TemperatureLogitsWarper(temperature)(None, logits)
    if top_k is not None:
        theirs = TopKLogitsWarper(top_k)(None, theirs)
    if top_p is not None:
        theirs = TopPLogitsWarper(top_p)(None, theirs)
    ours = next_token_distribution(logits, temperature, top_k, top_p)
    torch.testing.assert_close(ours, theirs.softmax(-1), rtol=1e-12, atol=1e-14)


def test_at_temperature_zero_the_likeliest_is_certain():
    logits = torch.tensor([[1.0, 5.0, 2.0], [-1.0, -5.0, -2.0]])
    assert next_token_distribution(logits, 0).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert next_token_distribution(logits, 0, top_k=2, top_p=0.1).tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("temperature", [1e-30, 1e-42, 1e-320])
def test_no_temperature_is_too_low(temperature):
    logits = torch.tensor([[1.0, 5.0, 2.0], [-7e4, -8e4, -torch.inf], [3.0, 3.0, 1.0]])
    wanted = [[0, 1, 0], [1, 0, 0], [0.5, 0.5, 0]]
    assert next_token_distribution(logits, temperature).tolist() == wanted
    assert generate(model(), PROMPT, 3, temperature, generator=seeded()).equal(generate(model(), PROMPT, 3, 0))


def test_all_of_the_probability_keeps_what_is_hardly_possible():
    logits = torch.tensor([0.0, -20.0, -21.0])  # in float32 the first has all of it already
    assert next_token_distribution(logits, top_p=1.0).equal(logits.softmax(0))


def test_tokens_that_are_equal_to_the_last_kept_stay():
    assert next_token_distribution(torch.zeros(4), top_k=2).tolist() == [0.25] * 4


def test_what_is_drawn_has_the_distribution():
    rows, gpt = 5_000, model()
    drawn = generate(gpt, PROMPT[:1].expand(rows, -1), 1, temperature=2.0, top_k=4, generator=seeded())[:, 0]
    wanted = next_token_distribution(gpt(PROMPT[:1])[0, -1], 2.0, 4).detach()
    shares = drawn.bincount(minlength=20).double() / rows
    assert (shares[wanted == 0] == 0).all()
    assert ((shares - wanted).abs() <= 6 * (wanted * (1 - wanted) / rows).sqrt() + 1e-12).all()


# --- What is read ---


def without_caches(gpt, text, length):
    """The likeliest tokens, with everything read anew each time, as `generate` promises to read it."""
    most, kept = gpt.config.max_length, text
    for _ in range(length):
        if kept.shape[1] > most:
            kept = kept[:, -(most // 2) :]
        token = gpt(kept)[:, -1].argmax(-1, keepdim=True)
        text, kept = torch.cat([text, token], 1), torch.cat([kept, token], 1)
    return text[:, -length:]


@pytest.mark.parametrize("length", [1, 12, 13, 14, 40])
def test_caches_change_nothing_below_and_beyond_the_longest_text(length):
    gpt = model()
    assert generate(gpt, PROMPT, length, temperature=0).equal(without_caches(gpt, PROMPT, length))


@pytest.mark.parametrize(("length", "room"), [(10, 64), (61, 64), (62, 128), (300, 128)])
def test_caches_have_room_for_the_text_in_whole_blocks(length, room, monkeypatch):
    gpt, asked = model(max_length=100), []
    made = gpt.new_caches
    monkeypatch.setattr(gpt, "new_caches", lambda most: asked.append(most) or made(most))
    generate(gpt, PROMPT, length, temperature=0)
    assert set(asked) == {room}


def test_of_a_prompt_too_long_the_end_is_read():
    gpt = model(max_length=8)
    long = torch.randint(20, (2, 30), generator=seeded())
    assert generate(gpt, long, 10, temperature=0).equal(generate(gpt, long[:, -8:], 10, temperature=0))
    assert generate(model(max_length=1), long, 3, temperature=0).shape == (2, 3)


def test_a_recorded_step_computes_what_a_growing_cache_does():
    gpt = model()
    caches = gpt.new_caches()
    gpt(PROMPT, caches=caches)
    with torch.no_grad():
        step, text = RecordedStep(gpt, caches), PROMPT
        for _ in range(12):
            token = torch.randint(20, (3, 1))
            text = torch.cat([text, token], 1)
            torch.testing.assert_close(step(token), gpt(text)[:, -1], rtol=1e-9, atol=1e-10)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_recording_writes_what_the_cpu_does():
    gpt = model(max_length=256)
    wanted = generate(gpt, PROMPT, 100, temperature=0)
    assert generate(gpt.cuda(), PROMPT.cuda(), 100, temperature=0).cpu().equal(wanted)


# --- Where it ends, and what it leaves alone ---


def test_rows_end_with_a_stop_token_and_wait_for_the_others():
    gpt = model()
    free = generate(gpt, PROMPT, 12, temperature=0)
    stop = free[:, 3].unique().tolist()
    written = generate(gpt, PROMPT, 12, temperature=0, stop=stop)
    ends = [next(place for place, token in enumerate(row) if token in stop) for row in free.tolist()]
    assert written.shape[1] == max(ends) + 1 <= 4
    for row, whole, end in zip(written.tolist(), free.tolist(), ends, strict=True):
        assert row[: end + 1] == whole[: end + 1]
        assert set(row[end:]) == {whole[end]}
    assert generate(gpt, PROMPT, 12, temperature=0, stop=int(free[0, 0])).shape[1] <= 12


def test_what_comes_after_the_last_end_is_cut_off():
    ends = torch.tensor([7, 8])
    rows = torch.tensor([[1, 7, 7, 7, 7, 7], [8, 8, 8, 8, 8, 8], [1, 2, 3, 8, 8, 8]])
    assert until_all_have_ended(rows, ends).equal(rows[:, :4])
    assert until_all_have_ended(rows[:2], ends).equal(rows[:2, :2])
    assert until_all_have_ended(rows[1:2], ends).equal(rows[1:2, :1])
    going_on = torch.tensor([[1, 2, 3]])
    assert until_all_have_ended(going_on, ends).equal(going_on)


def test_nothing_is_tempered_or_cut_unless_told():
    gpt, wanted = model(), next_token_distribution(torch.arange(20.0), 1.0, None, None)
    assert generate(gpt, PROMPT, 12, generator=seeded()).equal(generate(gpt, PROMPT, 12, 1.0, generator=seeded()))
    assert next_token_distribution(torch.arange(20.0)).equal(wanted)
    torch.testing.assert_close(wanted, torch.arange(20.0).softmax(0))


def test_the_same_seed_writes_the_same_and_the_mode_is_kept():
    gpt = model(dropout=0.5).train()
    one, two, other = (generate(gpt, PROMPT, 12, generator=seeded(seed)) for seed in (0, 0, 1))
    assert one.equal(two)
    assert not one.equal(other)
    assert gpt.training


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_precisions(dtype):
    assert generate(model().to(dtype), PROMPT[:1], 5, top_p=0.9, generator=seeded()).shape == (1, 5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"length": 0}, "length must be"),
        ({"temperature": -1}, "temperature must be >= 0"),
        ({"top_k": 0}, "top_k must be"),
        ({"top_p": 0.0}, "top_p must be > 0"),
        ({"top_p": 1.5}, "top_p must be"),
        ({"stop": 20}, "stop must hold tokens from 0 to 19"),
        ({"prompt": torch.zeros(1, 0, dtype=torch.long)}, "prompt must be"),
        ({"prompt": torch.zeros(3, dtype=torch.long)}, "prompt must be"),
    ],
)
def test_bad_input_is_answered(words, message):
    with pytest.raises(ValueError, match=message):
        generate(model(), **({"prompt": PROMPT, "length": 3} | words))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_a_prompt_in_few_bits_is_read_and_nothing_overflows(dtype, unchecked):
    large = GPT(vocab_size=40_000, width=8, depth=1, heads=1, max_length=8)
    with torch.no_grad():
        large.tokens.weight[39_999] = 100 * large.hidden(PROMPT)[0, -1]
    written = generate(large, PROMPT.to(dtype), 3, temperature=0)
    assert written.equal(generate(large, PROMPT, 3, temperature=0).int())
    assert written[0, 0] == 39_999


def test_a_prompt_must_hold_tokens(unchecked):
    with pytest.raises(TypeError, match="prompt must hold tokens as integers"):
        generate(model(), PROMPT.float(), 3)
    with pytest.raises(ValueError, match="prompt must hold tokens from 0 to 19, got"):
        generate(model(), PROMPT + 20, 3)


def test_logits_must_be_real_numbers(unchecked):
    with pytest.raises(ValueError, match="logits must be"):
        next_token_distribution(torch.arange(3))
    with pytest.raises(ValueError, match=r"logits must be \(..., vocab_size\) real numbers, got torch.float32 \(0,\)"):
        next_token_distribution(torch.zeros(0))


# --- Prompts of different lengths, and several texts at once ---


def theirs(ours, folder):
    """The same weights in Hugging Face's model, whose generate is the reference."""
    ours.save_pretrained(folder)
    return GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float64).eval()


PADDED = torch.arange(4) >= torch.tensor([0, 2, 3])[:, None]


@pytest.mark.parametrize("words", [{}, {"stop": 3}, {"temperature": 1.0, "top_k": 5}], ids=str)
def test_left_padded_prompts_go_on_as_those_of_hugging_face(words, tmp_path):
    ours, length = model(), 9
    reference = theirs(ours, tmp_path)
    torch.manual_seed(5)
    settings = {"do_sample": "top_k" in words, "top_k": words.get("top_k"), "eos_token_id": words.get("stop")}
    wanted = reference.generate(PROMPT, attention_mask=PADDED.long(), max_new_tokens=length, pad_token_id=3, **settings)
    torch.manual_seed(5)
    found = generate(ours, PROMPT, length, **({"temperature": 0} | words), mask=PADDED)
    assert found.tolist() == wanted[:, 4:].tolist()


def test_padding_on_the_left_changes_nothing_even_beyond_the_longest_text():
    ours = model()
    for number, real in enumerate(PADDED.sum(1).tolist()):
        alone = generate(ours, PROMPT[number : number + 1, 4 - real :], 7, temperature=0)
        assert generate(ours, PROMPT, 7, temperature=0, mask=PADDED)[number].tolist() == alone[0].tolist()
    everything = torch.ones_like(PADDED)
    assert generate(ours, PROMPT, 30, 0, mask=everything).equal(generate(ours, PROMPT, 30, 0))
    assert generate(ours, PROMPT, 30, 0, mask=PADDED).shape == (3, 30)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("beams", "penalty", "stop", "padded"),
    [(2, 1.0, (), False), (4, 1.0, (3,), False), (3, 0.0, (3, 7), True), (5, 2.0, (3,), True), (20, 1.0, (3,), False)],
)
def test_beams_are_those_of_hugging_face(seed, beams, penalty, stop, padded, tmp_path):
    torch.manual_seed(seed)
    ours, length = model(), 8
    for values in ours.parameters():
        values.data.copy_(0.4 * torch.randn(values.shape, dtype=torch.float64))
    prompt, mask = torch.randint(20, (3, 4)), PADDED if padded else torch.ones_like(PADDED)
    words = {"num_beams": beams, "length_penalty": penalty, "eos_token_id": list(stop) or None, "pad_token_id": 0}
    wanted = theirs(ours, tmp_path).generate(
        prompt, attention_mask=mask.long(), max_new_tokens=length, do_sample=False, **words
    )
    settings = {"beams": beams, "length_penalty": penalty, "stop": stop, "mask": mask if padded else None}
    found = generate(ours, prompt, length, temperature=0, **settings)
    for mine, its in zip(found.tolist(), wanted[:, 4:].tolist(), strict=True):
        assert until_end(mine, stop) == until_end(its, stop)


def until_end(tokens, stop):
    """The tokens up to the first that ends a text."""
    return tokens[: next((place + 1 for place, token in enumerate(tokens) if token in stop), len(tokens))]


def test_many_beams_find_the_likeliest_text():
    torch.manual_seed(0)
    small = GPT(vocab_size=4, width=8, depth=1, heads=2, max_length=8, dtype=torch.float64)
    for values in small.parameters():
        values.data.mul_(10.0)
    prompt = torch.tensor([[1, 2]])
    texts = torch.cartesian_prod(*[torch.arange(4)] * 3)  # (64, 3)
    likely = -small.nll(
        torch.cat([prompt.expand(64, -1), texts[:, :2]], 1), torch.cat([prompt[:, 1:].expand(64, -1), texts], 1)
    )
    best = texts[likely[:, 1:].sum(1).argmax()]
    assert generate(small, prompt, 3, temperature=0, beams=64)[0].equal(best)
    assert generate(small, prompt, 3, temperature=0, beams=1).equal(generate(small, prompt, 3, temperature=0))


@pytest.mark.usefixtures("unchecked")
def test_masks_and_beams_of_another_kind_are_answered():
    for words, error, message in (
        ({"mask": PADDED.long()}, TypeError, r"mask must be boolean, .*: use mask.bool\(\)"),
        ({"mask": PADDED[:, 1:]}, ValueError, r"mask must have the shape of prompt, \(3, 4\), got \(3, 3\)"),
        ({"mask": PADDED.flip(1)}, ValueError, "pad prompts on the left"),
        ({"beams": 2}, ValueError, "beams=2 follows the likeliest texts and draws none: say temperature=0"),
        ({"beams": 0}, ValueError, "beams must be >= 1, got 0"),
        ({"beams": 2, "temperature": 0, "length": 14}, ValueError, r"at most 17 tokens together, got 4 \+ 14"),
        ({"beams": 2, "temperature": 0, "length_penalty": torch.inf}, ValueError, "length_penalty must be finite"),
    ):
        with pytest.raises(error, match=message):
            generate(model(), PROMPT, **({"length": 3} | words))
    with pytest.raises(ValueError, match=r"positions must have the shape of x, \(3, 4\), got \(3, 2\)"):
        model()(PROMPT, positions=PROMPT[:, :2])
