"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.transformers.attention_recording import attention_maps as attention_maps
from lemmata.transformers.bert import Bert as Bert
from lemmata.transformers.bert import BertConfig as BertConfig
from lemmata.transformers.bert import BertOutput as BertOutput
from lemmata.transformers.bert_pretraining import BertForPretraining as BertForPretraining
from lemmata.transformers.bert_pretraining import MaskedLanguageHead as MaskedLanguageHead
from lemmata.transformers.bert_pretraining import PretrainingOutput as PretrainingOutput
from lemmata.transformers.byte_pair import BytePairEncoding as BytePairEncoding
from lemmata.transformers.cross_attention import CrossAttention as CrossAttention
from lemmata.transformers.cross_attention import Remembered as Remembered
from lemmata.transformers.dot_product_attention import attention as attention
from lemmata.transformers.dot_product_attention import attention_weights as attention_weights
from lemmata.transformers.encoder_decoder import TransformerDecoder as TransformerDecoder
from lemmata.transformers.encoder_decoder import TransformerEncoder as TransformerEncoder
from lemmata.transformers.encoder_decoder import TransformerStackConfig as TransformerStackConfig
from lemmata.transformers.few_shot import answer_log_probabilities as answer_log_probabilities
from lemmata.transformers.few_shot import few_shot_prompt as few_shot_prompt
from lemmata.transformers.fine_tuned import FineTuned as FineTuned
from lemmata.transformers.fine_tuned import SentenceClassifier as SentenceClassifier
from lemmata.transformers.generation import generate as generate
from lemmata.transformers.generation import next_token_distribution as next_token_distribution
from lemmata.transformers.gpt import GPT as GPT
from lemmata.transformers.gpt import GPTConfig as GPTConfig
from lemmata.transformers.key_value_cache import FixedCache as FixedCache
from lemmata.transformers.key_value_cache import KeyValueCache as KeyValueCache
from lemmata.transformers.masking import MaskedTokens as MaskedTokens
from lemmata.transformers.masking import mask_tokens as mask_tokens
from lemmata.transformers.pair_merging import merged_pairs as merged_pairs
from lemmata.transformers.patches import PatchEmbedding as PatchEmbedding
from lemmata.transformers.patches import cut_into_patches as cut_into_patches
from lemmata.transformers.positions import LearnedPositions as LearnedPositions
from lemmata.transformers.positions import SinusoidalPositions as SinusoidalPositions
from lemmata.transformers.positions import rotate as rotate
from lemmata.transformers.positions import sinusoidal_encoding as sinusoidal_encoding
from lemmata.transformers.preferences import Comparisons as Comparisons
from lemmata.transformers.preferences import DPO as DPO
from lemmata.transformers.preferences import RewardModel as RewardModel
from lemmata.transformers.preferences import aligned_distribution as aligned_distribution
from lemmata.transformers.preferences import answer_log_likelihood as answer_log_likelihood
from lemmata.transformers.preferences import preference_loss as preference_loss
from lemmata.transformers.pretrained import Fields as Fields
from lemmata.transformers.pretrained import Stored as Stored
from lemmata.transformers.pretrained import read_pretrained as read_pretrained
from lemmata.transformers.pretrained import take_weights as take_weights
from lemmata.transformers.pretrained import write_pretrained as write_pretrained
from lemmata.transformers.question_answering import QuestionAnswerer as QuestionAnswerer
from lemmata.transformers.question_answering import Span as Span
from lemmata.transformers.question_answering import SpanLogits as SpanLogits
from lemmata.transformers.question_answering import best_span as best_span
from lemmata.transformers.question_answering import passage_mask as passage_mask
from lemmata.transformers.self_attention import SelfAttention as SelfAttention
from lemmata.transformers.sentence_encoder import SentenceEncoder as SentenceEncoder
from lemmata.transformers.sentence_encoder import pooled_tokens as pooled_tokens
from lemmata.transformers.sentence_pairs import SentencePairs as SentencePairs
from lemmata.transformers.sentence_pairs import draw_pairs as draw_pairs
from lemmata.transformers.sentence_pairs import join_pairs as join_pairs
from lemmata.transformers.tagging import Tagger as Tagger
from lemmata.transformers.tagging import first_pieces as first_pieces
from lemmata.transformers.tagging import tag_targets as tag_targets
from lemmata.transformers.text_cleaning import CleanedCharacters as CleanedCharacters
from lemmata.transformers.tokenizer_file import TokenizerFile as TokenizerFile
from lemmata.transformers.torch_layers import block_from_torch as block_from_torch
from lemmata.transformers.transformer import Transformer as Transformer
from lemmata.transformers.transformer import TransformerMemory as TransformerMemory
from lemmata.transformers.transformer_block import FeedForward as FeedForward
from lemmata.transformers.transformer_block import TransformerBlock as TransformerBlock
from lemmata.transformers.vit import ViT as ViT
from lemmata.transformers.vit import ViTConfig as ViTConfig
from lemmata.transformers.wordpiece import Encoding as Encoding
from lemmata.transformers.wordpiece import SpecialTokens as SpecialTokens
from lemmata.transformers.wordpiece import TokenBatch as TokenBatch
from lemmata.transformers.wordpiece import WordPiece as WordPiece

__all__ = [
    "Bert",
    "BertConfig",
    "BertForPretraining",
    "BertOutput",
    "BytePairEncoding",
    "CleanedCharacters",
    "Comparisons",
    "CrossAttention",
    "DPO",
    "Encoding",
    "FeedForward",
    "Fields",
    "FineTuned",
    "FixedCache",
    "GPT",
    "GPTConfig",
    "KeyValueCache",
    "LearnedPositions",
    "MaskedLanguageHead",
    "MaskedTokens",
    "PatchEmbedding",
    "PretrainingOutput",
    "QuestionAnswerer",
    "Remembered",
    "RewardModel",
    "SelfAttention",
    "SentenceClassifier",
    "SentenceEncoder",
    "SentencePairs",
    "SinusoidalPositions",
    "Span",
    "SpanLogits",
    "SpecialTokens",
    "Stored",
    "Tagger",
    "TokenBatch",
    "TokenizerFile",
    "Transformer",
    "TransformerBlock",
    "TransformerDecoder",
    "TransformerEncoder",
    "TransformerMemory",
    "TransformerStackConfig",
    "ViT",
    "ViTConfig",
    "WordPiece",
    "aligned_distribution",
    "answer_log_likelihood",
    "answer_log_probabilities",
    "attention",
    "attention_maps",
    "attention_weights",
    "best_span",
    "block_from_torch",
    "cut_into_patches",
    "draw_pairs",
    "few_shot_prompt",
    "first_pieces",
    "generate",
    "join_pairs",
    "mask_tokens",
    "merged_pairs",
    "next_token_distribution",
    "passage_mask",
    "pooled_tokens",
    "preference_loss",
    "read_pretrained",
    "rotate",
    "sinusoidal_encoding",
    "tag_targets",
    "take_weights",
    "write_pretrained",
]
