r"""Folders with the weights that the world uses: a config.json and a model.safetensors, in Hugging Face's names.

A model says once which of its parameters is which stored tensor (`Stored`) and which fields of a config it honours
(`Fields`); reading, refusing, writing and their messages are here, the same for all.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from lemmata import validate
from lemmata.files import write_whole

__all__ = ["Fields", "Stored", "read_pretrained", "take_weights", "write_pretrained"]

# Fields of a config that change nothing of what a model computes in evaluation: who made it, with what, and how
# generation or training were set up.
WITHOUT_EFFECT = frozenset(
    """_name_or_path architectures bos_token_id chunk_size_feed_forward cls_token_id dtype eos_token_id
    finetuning_task id2label is_composition label2id mask_token_id model_type output_attentions output_hidden_states
    pad_token_id problem_type return_dict sep_token_id task_specific_params tokenizer_class torch_dtype torchscript
    transformers_version unk_token_id use_cache use_return_dict decoder_start_token_id prefix
    gradient_checkpointing initializer_factor initializer_range tie_encoder_decoder
    _attn_implementation_autoset _num_labels num_labels output_past predict_special_tokens use_bfloat16 xla_device
    bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size
    exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id length_penalty max_length min_length
    no_repeat_ngram_size num_beam_groups num_beams num_return_sequences output_scores remove_invalid_values
    repetition_penalty return_dict_in_generate suppress_tokens temperature tf_legacy_loss top_k top_p
    typical_p""".split()
)
NOTHING_PRUNED = {"pruned_heads": ({}, None)}  # asked of every model: heads that were taken out are not here

# Activations by Hugging Face's names; what is written bears the first name of an activation.
ACTIVATIONS = {
    "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu", "silu": "silu",
    "swish": "silu", "tanh": "tanh",
}  # fmt: skip


def activation_read(field: str, name: str) -> str:
    """Our name of an activation that a config names."""
    return ACTIVATIONS[validate.one_of(field, name, ACTIVATIONS)]


def activation_written(name: str) -> str:
    """The name under which a config tells an activation."""
    found = next((theirs for theirs, ours in ACTIVATIONS.items() if ours == name), None)
    if found is None:
        known = ", ".join(dict.fromkeys(ACTIVATIONS.values()))
        raise ValueError(f"activation {name!r} has no name in Hugging Face's format: one of {known} can be written")
    return found


class Stored(NamedTuple):
    """Where a parameter is stored: the tensors that follow one another in its rows, each turned over or not."""

    names: tuple[str, ...]
    transposed: bool = False

    def joined(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The parameter, from the stored tensors."""
        parts = [tensors[name].mT if self.transposed else tensors[name] for name in self.names]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def split(self, parameter: Tensor) -> dict[str, Tensor]:
        """The stored tensors, from the parameter."""
        parts = parameter.chunk(len(self.names))
        turned = (part.mT if self.transposed else part for part in parts)
        return {name: part.detach().cpu().contiguous() for name, part in zip(self.names, turned, strict=True)}


class Fields(NamedTuple):
    """What a model does with the fields of a config: honours them under names of its own, or asks for one value."""

    honoured: Mapping[str, str]
    fixed: Mapping[str, Sequence[Any]]
    without_effect: frozenset[str] = frozenset()

    def arguments(self, config: Mapping[str, Any], where: Path | str) -> dict[str, Any]:
        """The arguments that a config gives to the model; a field that would not be honoured is refused by name."""
        found, fixed = {}, NOTHING_PRUNED | dict(self.fixed)
        for field, value in config.items():
            if field in self.honoured:
                found[self.honoured[field]] = value
            elif field in fixed:
                if value not in fixed[field]:
                    wanted = " or ".join(json.dumps(each) for each in fixed[field])
                    raise ValueError(f"{where}: {field} is {json.dumps(value)}, which is not supported: only {wanted}")
            elif field not in WITHOUT_EFFECT | self.without_effect:
                raise ValueError(
                    f"{where}: the field {field} ({json.dumps(value)}) is not known, and might change what the model "
                    "computes: remove it if it does not"
                )
        return found


def read_pretrained(folder: Path | str, model_type: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The config and all tensors of a folder, whose config must be that of this type of model."""
    folder = Path(folder)
    config = read_config(folder / "config.json")
    if config.get("model_type") != model_type:
        raise ValueError(f"{folder} holds a model of type {config.get('model_type')!r}, not {model_type!r}")
    tensors: dict[str, Tensor] = {}
    for file in _weight_files(folder):
        try:
            tensors |= load_file(file)
        except FileNotFoundError:
            raise FileNotFoundError(f"{file} is missing: copy the whole folder again") from None
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{file} cannot be read as safetensors ({error}): copy it again") from None
    return config, tensors


def read_config(file: Path) -> dict[str, Any]:
    """A config.json as a dictionary."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{file} is missing: a pretrained model is a folder with a config.json") from None
    except (ValueError, OSError) as error:
        raise ValueError(f"{file} cannot be read as JSON ({error}): copy it again") from None
    if not isinstance(found, dict):
        raise ValueError(f"{file} must hold an object of fields, got {type(found).__name__}")
    return found


def take_weights(
    model: nn.Module,
    stored: Mapping[str, Stored],
    tensors: Mapping[str, Tensor],
    where: Path | str,
    prefix: str = "",
    ignored: Sequence[str] = (),
) -> None:
    """Give a model the stored weights; a missing, unknown or misshapen tensor is named.

    `prefix` is what the names begin with where the checkpoint holds a head on top of the model; tensors outside of it
    are then those of the head, and are left. `ignored` are ends of names that are no weights (constant masks).
    """
    if any(name.startswith(prefix) for name in tensors):
        tensors = {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}
    parameters = dict(model.named_parameters())
    wanted = {name for source in stored.values() for name in source.names}
    for name in tensors:
        if name not in wanted and not name.endswith(tuple(ignored)):
            raise ValueError(f"{where} holds a tensor {name}, for which {type(model).__name__} has no place")
    new = {}
    for name, parameter in parameters.items():
        source = stored[name]
        for part in source.names:
            if part not in tensors:
                raise ValueError(f"{where} lacks the tensor {part}: copy it again, or it is another kind of model")
        try:
            value = source.joined(tensors)
        except RuntimeError:
            value = torch.empty(0)
        if value.shape != parameter.shape:
            shapes = ", ".join(f"{part} {tuple(tensors[part].shape)}" for part in source.names)
            asked = tuple(reversed(parameter.shape) if source.transposed else parameter.shape)  # as it is stored
            raise ValueError(f"{where}: {shapes} does not fit the config, which asks for {asked}")
        new[name] = value
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(new[name])


def write_pretrained(
    model: nn.Module, stored: Mapping[str, Stored], config: Mapping[str, Any], folder: Path | str
) -> None:
    """Write a model as a folder that Hugging Face's from_pretrained reads."""
    folder = Path(folder)
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors |= stored[name].split(parameter)
    write_whole(folder / "model.safetensors", save(tensors, metadata={"format": "pt"}))
    write_whole(folder / "config.json", (json.dumps(dict(config), indent=2) + "\n").encode())


def _weight_files(folder: Path) -> list[Path]:
    """The files of weights: one, or those that an index lists."""
    if (folder / "model.safetensors").exists():
        return [folder / "model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if index.exists():
        shards = read_config(index).get("weight_map")
        if not isinstance(shards, dict) or not all(Path(str(name)).name == name for name in shards.values()):
            raise ValueError(f"{index} must map tensors to files of its own folder: copy it again")
        return [folder / name for name in sorted(set(shards.values()))]
    if (folder / "pytorch_model.bin").exists():
        raise ValueError(
            f"{folder} holds pytorch_model.bin, a pickle, which may run code when it is read: in the program that "
            "made it, save_pretrained(folder, safe_serialization=True) writes model.safetensors"
        )
    raise FileNotFoundError(f"{folder} holds no model.safetensors: download or copy it into the folder")
