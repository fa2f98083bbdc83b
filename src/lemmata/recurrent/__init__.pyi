"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.recurrent.additive_attention import AdditiveAttention as AdditiveAttention
from lemmata.recurrent.additive_attention import AttentionMemory as AttentionMemory
from lemmata.recurrent.backpropagation_through_time import TimeGradients as TimeGradients
from lemmata.recurrent.backpropagation_through_time import backpropagate_through_time as backpropagate_through_time
from lemmata.recurrent.backpropagation_through_time import forward_sensitivities as forward_sensitivities
from lemmata.recurrent.backpropagation_through_time import through_readout as through_readout
from lemmata.recurrent.bidirectional import Bidirectional as Bidirectional
from lemmata.recurrent.bidirectional import reverse_sequences as reverse_sequences
from lemmata.recurrent.cells import CELLS as CELLS
from lemmata.recurrent.cells import recurrent_layer as recurrent_layer
from lemmata.recurrent.character_model import CharacterModel as CharacterModel
from lemmata.recurrent.conditional_sequence import ConditionalSequence as ConditionalSequence
from lemmata.recurrent.decoding import Decoded as Decoded
from lemmata.recurrent.decoding import beam_decode as beam_decode
from lemmata.recurrent.decoding import greedy_decode as greedy_decode
from lemmata.recurrent.decoding import sample_decode as sample_decode
from lemmata.recurrent.deep_transition import DeepTransition as DeepTransition
from lemmata.recurrent.diagonalisation import Diagonalisation as Diagonalisation
from lemmata.recurrent.diagonalisation import diagonalise as diagonalise
from lemmata.recurrent.diagonalisation import impulse_response as impulse_response
from lemmata.recurrent.eigenvalue_ring import eigenvalues_on_ring as eigenvalues_on_ring
from lemmata.recurrent.eigenvalue_ring import input_gain as input_gain
from lemmata.recurrent.eigenvalue_ring import log_rate as log_rate
from lemmata.recurrent.eigenvalue_ring import polar as polar
from lemmata.recurrent.eigenvalue_ring import ring_parameters as ring_parameters
from lemmata.recurrent.elman import Elman as Elman
from lemmata.recurrent.gate import GatedLayer as GatedLayer
from lemmata.recurrent.generation_cost import CausalAttention as CausalAttention
from lemmata.recurrent.generation_cost import KeyValueCache as KeyValueCache
from lemmata.recurrent.generation_cost import dependency_depth as dependency_depth
from lemmata.recurrent.generation_cost import multiplications as multiplications
from lemmata.recurrent.gradient_flow import GradientFlow as GradientFlow
from lemmata.recurrent.gradient_flow import growth_rates as growth_rates
from lemmata.recurrent.gradient_flow import measure_gradient_flow as measure_gradient_flow
from lemmata.recurrent.gradient_flow import spectral_radius as spectral_radius
from lemmata.recurrent.gradient_flow import step_bound as step_bound
from lemmata.recurrent.gradient_flow import with_spectral_norm as with_spectral_norm
from lemmata.recurrent.gradient_flow import with_spectral_radius as with_spectral_radius
from lemmata.recurrent.gru import GRU as GRU
from lemmata.recurrent.gru import GRUGates as GRUGates
from lemmata.recurrent.input_gated import InputGatedLayer as InputGatedLayer
from lemmata.recurrent.input_gated import InputGates as InputGates
from lemmata.recurrent.jacobians_through_time import jacobian_products as jacobian_products
from lemmata.recurrent.jacobians_through_time import log_norms as log_norms
from lemmata.recurrent.jacobians_through_time import orthogonality_defect as orthogonality_defect
from lemmata.recurrent.jacobians_through_time import state_jacobians as state_jacobians
from lemmata.recurrent.layer import RecurrentLayer as RecurrentLayer
from lemmata.recurrent.layer import State as State
from lemmata.recurrent.linear_stability import Stability as Stability
from lemmata.recurrent.linear_stability import is_stable as is_stable
from lemmata.recurrent.linear_stability import steady_state as steady_state
from lemmata.recurrent.linear_state_space import convolved_states as convolved_states
from lemmata.recurrent.linear_state_space import evolve as evolve
from lemmata.recurrent.linear_state_space import response_kernel as response_kernel
from lemmata.recurrent.lru import LRU as LRU
from lemmata.recurrent.lstm import LSTM as LSTM
from lemmata.recurrent.lstm import LSTMGates as LSTMGates
from lemmata.recurrent.min_gru import MinGRU as MinGRU
from lemmata.recurrent.min_lstm import MinLSTM as MinLSTM
from lemmata.recurrent.ngram import NGram as NGram
from lemmata.recurrent.output_map import Autoregressor as Autoregressor
from lemmata.recurrent.output_map import OutputMap as OutputMap
from lemmata.recurrent.output_map import SequenceClassifier as SequenceClassifier
from lemmata.recurrent.output_map import Tagger as Tagger
from lemmata.recurrent.residual_block import ResidualBlock as ResidualBlock
from lemmata.recurrent.sequence_reader import SequenceReader as SequenceReader
from lemmata.recurrent.sequence_to_sequence import Encoded as Encoded
from lemmata.recurrent.sequence_to_sequence import SequenceToSequence as SequenceToSequence
from lemmata.recurrent.stacked import Stacked as Stacked
from lemmata.recurrent.task_gradients import gradient_reach as gradient_reach
from lemmata.recurrent.torch_weights import one_layer as one_layer
from lemmata.recurrent.unrolling import Unrolled as Unrolled

__all__ = [
    "AdditiveAttention",
    "AttentionMemory",
    "Autoregressor",
    "Bidirectional",
    "CELLS",
    "CausalAttention",
    "CharacterModel",
    "ConditionalSequence",
    "Decoded",
    "DeepTransition",
    "Diagonalisation",
    "Elman",
    "Encoded",
    "GRU",
    "GRUGates",
    "GatedLayer",
    "GradientFlow",
    "InputGatedLayer",
    "InputGates",
    "KeyValueCache",
    "LRU",
    "LSTM",
    "LSTMGates",
    "MinGRU",
    "MinLSTM",
    "NGram",
    "OutputMap",
    "RecurrentLayer",
    "ResidualBlock",
    "SequenceClassifier",
    "SequenceReader",
    "SequenceToSequence",
    "Stability",
    "Stacked",
    "State",
    "Tagger",
    "TimeGradients",
    "Unrolled",
    "backpropagate_through_time",
    "beam_decode",
    "convolved_states",
    "dependency_depth",
    "diagonalise",
    "eigenvalues_on_ring",
    "evolve",
    "forward_sensitivities",
    "gradient_reach",
    "greedy_decode",
    "growth_rates",
    "impulse_response",
    "input_gain",
    "is_stable",
    "jacobian_products",
    "log_norms",
    "log_rate",
    "measure_gradient_flow",
    "multiplications",
    "one_layer",
    "orthogonality_defect",
    "polar",
    "recurrent_layer",
    "response_kernel",
    "reverse_sequences",
    "ring_parameters",
    "sample_decode",
    "spectral_radius",
    "state_jacobians",
    "steady_state",
    "step_bound",
    "through_readout",
    "with_spectral_norm",
    "with_spectral_radius",
]
