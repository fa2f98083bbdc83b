"""The conformance suite passes what is recurrent, and fails what is not by exactly the check that it breaks."""

from collections import namedtuple

import pytest
import torch
from torch import nn

from lemmata.recurrent import GRU, LRU, LSTM, Bidirectional, DeepTransition, Elman, MinGRU, MinLSTM, Stacked
from lemmata.testing import RecurrenceError, check_recurrence

LAYERS = {
    "Elman": lambda: Elman(3, 4),
    "DeepTransition": lambda: DeepTransition(3, 4),
    "Stacked": lambda: Stacked(LSTM(3, 4), GRU(4, 5)),
    "LSTM": lambda: LSTM(3, 4),
    "LSTM with U": lambda: LSTM(3, 4, cell_matrix=True),
    "GRU": lambda: GRU(3, 4),
    "GRU as the paper has it": lambda: GRU(3, 4, reset="before"),
    "MinGRU": lambda: MinGRU(3, 4),
    "MinLSTM": lambda: MinLSTM(3, 4),
    "LRU": lambda: LRU(3, 4),
}
TORCH = {
    "RNN": lambda: nn.RNN(3, 4),
    "LSTM": lambda: nn.LSTM(3, 4, batch_first=True),
    "deep GRU": lambda: nn.GRU(3, 4, num_layers=2, dropout=0.5),
}


class Echo(nn.Module):
    """A decaying sum of the inputs, with every virtue that the suite asks for."""

    def __init__(self):
        super().__init__()
        self.inputs = 3
        self.weight = nn.Parameter(torch.tensor([0.9, -0.5, 0.7]))

    def start(self, x):
        return torch.zeros_like(x[:, :0].sum(1))

    def masked(self, x, lengths):
        if lengths is None:
            return x
        return x.masked_fill(torch.arange(x.shape[1])[:, None] >= lengths[:, None, None], 0)

    def forward(self, x, state=None, lengths=None):
        state = self.start(x) if state is None else state
        x = self.masked(x, lengths)
        states = [state]
        for time in range(x.shape[1]):
            states.append(self.step(x[:, time], states[-1]))
        if lengths is None:
            return torch.stack([*states, state], dim=1)[:, 1:-1], states[-1]
        return torch.stack(states[1:], dim=1), torch.stack(states)[lengths, torch.arange(len(x))]

    def step(self, x, state):
        return self.weight * state + x


class OutputsOnly(Echo):
    def forward(self, x, state=None):
        return super().forward(x, state)[0]


class TimeFirst(Echo):
    def forward(self, x, state=None):
        outputs, state = super().forward(x, state)
        return outputs.transpose(0, 1), state


class NoState(Echo):
    def forward(self, x, state=None):
        return super().forward(x, state)[0], None


class Refusing(Echo):
    def forward(self, x, state=None):
        raise KeyError("mask")


class Widening(Echo):
    def forward(self, x, state=None):
        outputs, state = super().forward(x, state)
        return outputs.double(), state


class Overflowing(Echo):
    def step(self, x, state):
        return super().step(x, state) * torch.inf


class WritingState(Echo):
    def forward(self, x, state=None, lengths=None):
        outputs, end = super().forward(x, state, lengths)
        if state is not None:
            state.data.copy_(end)
        return outputs, end


class WritingInputs(Echo):
    def forward(self, x, state=None, lengths=None):
        return super().forward(x.data.mul_(2), state, lengths)


class Noisy(Echo):
    def step(self, x, state):
        return super().step(x, state) + torch.randn(3)


class Counting(Echo):
    calls = 0

    def step(self, x, state):
        self.calls += 1
        return super().step(x, state) + self.calls


class Centred(Echo):
    def step(self, x, state):
        return super().step(x - x.mean(0), state)


class Squeezing(Echo):
    def forward(self, x, state=None, lengths=None):
        outputs, state = super().forward(x, state, lengths)
        return outputs.squeeze(0), state


class LookingAhead(Echo):
    reach, share = 2, 1.0

    def forward(self, x, state=None, lengths=None):
        x = self.masked(x, lengths)
        ahead = torch.cat([x[:, self.reach :], torch.zeros_like(x[:, : self.reach])], dim=1)
        outputs, state = super().forward(x, state, lengths)
        return outputs + self.share * ahead, state


class BarelyLookingAhead(LookingAhead):
    reach, share = 3, 1e-4


class Forgetful(Echo):
    def forward(self, x, state=None, lengths=None):
        return super().forward(x, None, lengths)


class WrongForOneStep(Echo):
    def forward(self, x, state=None, lengths=None):
        outputs, end = super().forward(x, state, lengths)
        return (outputs, end) if x.shape[1] != 1 or len(x) == 1 or state is None else (outputs, 2 * end)


class WrongOnTheSecondSingleStep(Echo):
    def forward(self, x, state=None):
        state, age = (None, torch.zeros(len(x))) if state is None else state
        outputs, end = super().forward(x, state)
        wrong = x.shape[1] == 1 and bool((age == 1).all())
        return outputs + wrong, (end, age + x.shape[1])


class RestartingWithoutSteps(Echo):
    def forward(self, x, state=None, lengths=None):
        return super().forward(x, state if x.shape[1] else None, lengths)


class WithoutMemory(Echo):
    def step(self, x, state):
        return self.weight * x


class Detaching(Echo):
    def forward(self, x, state=None, lengths=None):
        outputs, state = super().forward(x, state, lengths)
        return outputs, state.detach()


class DeafToLengths(Echo):
    def forward(self, x, state=None, lengths=None):
        return super().forward(x, state)


class MaskingByProduct(Echo):
    def masked(self, x, lengths):
        return x if lengths is None else x * (torch.arange(x.shape[1])[:, None] < lengths[:, None, None])


class MaskingTooLate(Echo):
    def masked(self, x, lengths):
        return super().masked(self.weight * x, lengths)


class TakingTheLastStep(Echo):
    def forward(self, x, state=None, lengths=None):
        outputs, end = super().forward(x, state, lengths)
        return outputs, end if lengths is None else outputs[torch.arange(len(x)), lengths - 1]


BROKEN = [
    (OutputsOnly, "interface", r"must return the pair \(outputs, state\), got Tensor"),
    (TimeFirst, "interface", r"the outputs must have the shape \(3, 6, \.\.\.\), batch first, got \(6, 3, 3\)"),
    (NoState, "interface", "the state must hold a tensor, got NoneType"),
    (Refusing, "interface", "the module raised KeyError: 'mask'"),
    (Widening, "dtype", "the outputs must have the dtype of the inputs, torch.float32, got torch.float64"),
    (Overflowing, "dtype", "the outputs must be finite for finite inputs"),
    (WritingState, "untouched", "the module writes into the state that it is given"),
    (WritingInputs, "untouched", "the module writes into its inputs"),
    (Noisy, "determinism", "must not be random, nor remember earlier calls.*, the output at step 0 of sequence 0"),
    (Counting, "determinism", "must not be random, nor remember earlier calls"),
    (Centred, "batch", "when sequence 0 is run alone instead of among others, the output at step 0"),
    (Squeezing, "batch", r"alone instead of among others, the outputs have the shape \(6, 3\) instead of \(1, 6, 3\)"),
    (LookingAhead, "causality", "the output at step 0 depends on the input at step 2: the module is not causal"),
    (BarelyLookingAhead, "causality", "the output at step 0 depends on the input at step 3"),
    (Forgetful, "hand_over", "when the state after 1 steps is handed over to a second call, the output at step 1"),
    (WrongForOneStep, "hand_over", "after 5 steps is handed over to a second call, the state at the end is another"),
    (WrongOnTheSecondSingleStep, "streaming", "when fed one step at a time, the output at step 1 of sequence 0"),
    (RestartingWithoutSteps, "empty", "without any step, the state at the end is another one"),
    (WithoutMemory, "gradient", "the last output has no gradient at the first input"),
    (Detaching, "detached", "the gradient stops at the state that is handed over"),
    (DeafToLengths, "lengths", "when sequence 1 ends after 4 steps among longer ones, the state at the end"),
    (MaskingByProduct, "padding", "when sequences are padded with nan, the output at step"),
    (MaskingTooLate, "padding", "when sequences are padded with nan, gradients are not finite"),
    (TakingTheLastStep, "no_steps", "when a sequence has length 0, the state at the end is another one"),
]


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_every_layer_of_the_chapter_passes_every_check(make):
    assert check_recurrence(make().double()).named("passed") == [*check_recurrence(Echo()).named("passed")]
    check_recurrence(make())


@pytest.mark.parametrize("make", TORCH.values(), ids=TORCH)
def test_torch_s_own_pass_with_packed_sequences_and_refuse_what_is_empty(make):
    assert check_recurrence(make()).named("skipped") == ["empty", "no_steps"]


@pytest.mark.parametrize("module", [nn.LSTM(3, 4, bidirectional=True), Bidirectional(Elman(3, 4), LSTM(3, 5))])
def test_what_runs_both_ways_is_not_causal_and_nothing_else_is_wrong(module):
    report = check_recurrence(module, on_fail="report")
    assert report.named("failed") == ["causality"]
    assert {"hand_over", "streaming", "detached"} <= set(report.named("skipped"))


@pytest.mark.parametrize(("module", "check", "why"), BROKEN, ids=[module.__name__ for module, _, _ in BROKEN])
def test_what_is_broken_fails_exactly_the_check_that_it_breaks(module, check, why):
    with pytest.raises(RecurrenceError, match=f"{module.__name__} failed 1 of 14 checks\n- {check}: .*{why}") as caught:
        check_recurrence(module())
    assert caught.value.report.named("failed") == [check]


def test_nothing_of_the_module_is_changed_and_no_randomness_used():
    module = nn.Sequential(nn.Dropout(0.5), Echo()).train()
    module[0].eval()
    echo, before = module[1], torch.random.get_rng_state()
    check_recurrence(echo)
    assert echo.training
    assert echo.weight.grad is None
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_module_is_judged_in_evaluation_mode_and_put_back():
    class Dropped(Echo):
        def step(self, x, state):
            return super().step(nn.functional.dropout(x, 0.5, self.training), state)

    module = Dropped().train()
    assert check_recurrence(module).passed
    assert module.training
    with pytest.raises(RecurrenceError):
        check_recurrence(Refusing().train())


def test_functions_and_states_of_any_make_are_judged():
    pair = namedtuple("pair", "old new")

    def remember(x, state):  # no default: started with None
        old, new = (x.new_zeros(len(x), 3), {"sum": [x.new_zeros(len(x), 3)]}) if state is None else state
        rows = []
        for row in x.unbind(1):
            old, new = new["sum"][0], {"sum": [0.5 * new["sum"][0] + old.tanh() + row]}
            rows.append(new["sum"][0])
        return torch.stack(rows, dim=1), pair(old, new)

    report = check_recurrence(remember, inputs=3, skip=["empty"])
    assert report.named("skipped") == ["lengths", "padding", "no_steps"]
    assert report.module == "remember"


def test_tokens_are_judged_without_gradients():
    class Tokens(nn.Module):
        batch_first = False

        def __init__(self):
            super().__init__()
            self.embed, self.layer = nn.Embedding(5, 3), nn.GRU(3, 4)

        def forward(self, tokens, state=None):
            return self.layer(self.embed(tokens), state)

    report = check_recurrence(Tokens(), torch.randint(5, (4, 7)), batch_first=False)
    assert report.named("skipped") == ["empty", "gradient", "detached", "lengths", "padding", "no_steps"]

    class Peeking(Tokens):
        def forward(self, tokens, state=None):
            return super().forward(tokens + 0 * tokens if state is not None else tokens.flip(0), state)

    assert check_recurrence(Peeking(), torch.randint(5, (4, 7)), on_fail="report").named("failed") == ["causality"]


def test_the_report_is_a_table():
    lines = str(check_recurrence(Forgetful(), on_fail="report", skip=["dtype"])).splitlines()
    assert lines[0] == "Forgetful: 1 of 13 checks failed"
    assert lines[1] == "interface    passed"
    assert lines[7] == "streaming    skipped: it needs hand_over, which did not pass"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"module": 3}, TypeError, "module must be callable, got int"),
        ({"module": nn.Linear(3, 3)}, ValueError, r"inputs must be given \(or an example x\): the module has no attr"),
        ({"inputs": 0}, ValueError, "inputs must be >= 1, got 0"),
        ({"x": [1.0]}, TypeError, "x must be a tensor, got list"),
        (
            {"x": torch.zeros(1, 5, 3)},
            ValueError,
            r"at least two sequences of at least three steps, got shape \(1, 5, 3\)",
        ),
        ({"tolerance": 0.0}, ValueError, "tolerance must be > 0, got 0.0"),
        ({"skip": ["speed"]}, ValueError, "skip must name checks among interface, dtype.*, got speed"),
        ({"on_fail": "warn"}, ValueError, "on_fail must be 'raise' or 'report', got 'warn'"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(arguments, error, message):
    with pytest.raises(error, match=message):
        check_recurrence(**{"module": Echo()} | arguments)
