r"""Folders with the weights that the world uses: a config.json and a model.safetensors, in Hugging Face's names.

A model says once which of its parameters is which stored tensor (`Stored`) and which fields of a config it honours
(`Fields`); reading, refusing, writing and their messages are here, the same for all.
"""

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from lemmata import validate
from lemmata.files import read_whole, write_whole

__all__ = ["Fields", "Stored", "read_pretrained", "take_weights", "write_pretrained"]

LARGEST_TEXT = 1 << 27  # bytes of a JSON or text file: tokenizer.json of the largest vocabularies has a third of it
# Kinds of numbers that are weights. Others need a scale that is stored elsewhere (fp8, int8) or are no weights.
FLOATS = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64}

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


class Sizes(NamedTuple):
    """Where the weights tell what a config tells as well: an axis of a tensor for each field, and the layers."""

    axes: Mapping[str, tuple[str, int]]
    layers: tuple[str, str]  # the field, and the name of a tensor that every layer N has

    def check(self, config: Mapping[str, Any], weights: "Weights", where: Path | str, prefix: str) -> None:
        """Refuse a config of another size than the weights, before anything of that size is built."""
        for field, (name, axis) in self.axes.items():
            if config.get(field) is not None:
                name = prefix + name if prefix + name in weights else name
                shape = weights.described(name).shape if name in weights else ()
                if len(shape) <= axis:
                    raise ValueError(f"{where} lacks the tensor {name}: copy it again, or it is another kind of model")
                _check_size(where, field, config[field], f"{name} is {tuple(shape)}", shape[axis])
        field, of_layer = self.layers
        if config.get(field) is not None:
            pattern = re.compile(rf"(?:{re.escape(prefix)})?" + re.escape(of_layer).replace("N", r"\d+", 1))
            layers = sum(bool(pattern.fullmatch(name)) for name in weights)
            _check_size(where, field, config[field], f"the layers of the weights are {layers}", layers)


def _check_size(where: Path | str, field: str, told: Any, stored: str, size: int) -> None:
    if told != size:
        raise ValueError(f"{where}: {field} is {json.dumps(told)}, but {stored}: they are not of one model")


class Weights(Mapping[str, Tensor]):
    """The tensors of files, each read when it is asked for; shapes and kinds of numbers are known without reading."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._places: dict[str, tuple[Path, Any, str]] = {}  # by name: the file, the same opened, its name there
        for file in files:
            if not file.exists():
                raise FileNotFoundError(f"{file} is missing: copy the whole folder again")
            if not file.is_file():  # a pipe would wait for ever
                raise ValueError(f"{file} must be a regular file, not a folder, pipe or device: copy the file itself")
            try:
                opened = safe_open(file, framework="pt")
            except (SafetensorError, OSError) as error:
                raise ValueError(f"{file} cannot be read as safetensors ({error}): copy it again") from None
            self._places |= {name: (file, opened, name) for name in opened.keys()}  # noqa: SIM118 - it is no mapping

    def __getitem__(self, name: str) -> Tensor:
        _, opened, stored = self._places[name]
        return opened.get_tensor(stored)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def described(self, name: str) -> Tensor:
        """A tensor of this shape and dtype without values; a dtype that weights do not have is refused."""
        file, opened, stored = self._places[name]
        part = opened.get_slice(stored)
        if (kind := part.get_dtype()) not in FLOATS:
            raise ValueError(
                f"{file}: {stored} holds numbers of the kind {kind}, which are no weights by themselves: "
                f"save the model in one of {', '.join(FLOATS)}"
            )
        return torch.empty(part.get_shape(), dtype=FLOATS[kind], device="meta")

    def renamed(self, new_name: Callable[[str], str]) -> "Weights":
        """The same tensors under other names."""
        made = Weights(())
        made._places = {new_name(name): place for name, place in self._places.items()}
        return made


def read_pretrained(folder: Path | str, model_type: str) -> tuple[dict[str, Any], Weights]:
    """The config and the tensors of a folder, whose config must be that of this type of model."""
    folder = Path(folder)
    config = read_config(folder / "config.json")
    if config.get("model_type") != model_type:
        raise ValueError(f"{folder} holds a model of type {config.get('model_type')!r}, not {model_type!r}")
    return config, Weights(_weight_files(folder))


def read_config(file: Path) -> dict[str, Any]:
    """A config.json as a dictionary."""
    found = read_json(file)
    if not isinstance(found, dict):
        raise ValueError(f"{file} must hold an object of fields, got {type(found).__name__}")
    return found


def read_json(file: Path) -> Any:
    """What a JSON file of a folder says."""
    text = read_text(file)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} cannot be read as JSON ({error}): copy it again") from None


def read_text(file: Path) -> str:
    """The text of a file of a folder; a missing one is named with the command that gets a folder."""
    try:
        return read_whole(file, LARGEST_TEXT).decode()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{file} is missing: a pretrained model is a folder with its files, "
            f"which `hf download NAME --local-dir {file.parent}` gets"
        ) from None
    except (UnicodeDecodeError, OSError) as error:
        raise ValueError(f"{file} cannot be read as text ({error}): copy it again") from None


def class_labels(config: Mapping[str, Any], where: Path | str) -> dict[str, str]:
    """The names of classes by their numbers, as far as a config tells them."""
    names = config.get("id2label") or {}
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ValueError(f"{where}: id2label must give every class a name, got {json.dumps(names)[:80]}")
    return names


def take_weights(
    model: nn.Module,
    stored: Mapping[str, Stored],
    tensors: Mapping[str, Tensor],
    where: Path | str,
    prefix: str = "",
    ignored: Sequence[str] = (),
    tied: Mapping[str, str] | None = None,
    heads: Mapping[str, str] | None = None,
    device: torch.device | str | None = None,
) -> None:
    """Give a model the stored weights in its own dtype; what is missing, unknown, misshapen or no weight is named.

    A model on the meta device gets its weights on `device`: nothing is allocated before every tensor is known to fit,
    and then one tensor after another. `prefix` is what the names begin with where the checkpoint holds a head on top
    of the model. `heads` are the names of heads that are left, by what they begin with: a sentence, unless it is
    empty, says what reads them. `ignored` are ends of names that are no weights (constant masks). `tied` are copies,
    by name, of other tensors: one that differs would be another model, and is refused.
    """
    names = _inner_names(model, tensors, where, prefix, ignored, tied or {}, heads or {}, stored)
    parameters = dict(model.named_parameters())
    for name, parameter in parameters.items():
        _check_shape(stored[name], {part: _tensor_header(tensors, names, part, where) for part in stored[name].names},
                     parameter, where)  # fmt: skip
    for copy, original in (tied or {}).items():
        if copy in names and not _is_same_tensor(tensors[names[copy]], tensors[names[original]]):
            raise ValueError(
                f"{where}: {names[copy]} differs from {names[original]}, but {type(model).__name__} has one tensor for "
                "both: tie them in the program that made the folder, and save it again"
            )
    new, strange = {}, []
    for name, parameter in parameters.items():
        parts = {part: tensors[names[part]] for part in stored[name].names}
        strange += [
            names[part] for part, values in parts.items() if not _check_finite(names[part], values, parameter, where)
        ]
        place = device or torch.get_default_device() if parameter.is_meta else parameter.device
        value = stored[name].joined(parts)
        new[name] = torch.empty(value.shape, dtype=parameter.dtype, device=place).copy_(value)
    if strange:
        told = f"{where}: {strange[0]}" + (f" and {len(strange) - 1} other tensors hold" if strange[1:] else " holds")
        warnings.warn(f"{told} NaN or infinity, which outputs inherit: copy it again", stacklevel=3)
    model.load_state_dict(new, assign=True)


def _inner_names(
    model: nn.Module,
    tensors: Mapping[str, Tensor],
    where: Path | str,
    prefix: str,
    ignored: Sequence[str],
    tied: Mapping[str, str],
    heads: Mapping[str, str],
    stored: Mapping[str, Stored],
) -> dict[str, str]:
    """The names of the model's own tensors without their prefix, each with its name in the file."""
    prefix = prefix if any(name.startswith(prefix) for name in tensors) else ""
    wanted = {name for source in stored.values() for name in source.names}
    names, left = {}, {}
    for name in tensors:
        inner = name.removeprefix(prefix)
        if name in tied or (inner in wanted and name.startswith(prefix)):
            names[name if name in tied else inner] = name
        elif head := next((head for head in heads if name.startswith(head)), None):
            left[head] = name
        elif not inner.endswith(tuple(ignored)):
            raise ValueError(f"{where} holds a tensor {name}, for which {type(model).__name__} has no place")
    for head, name in left.items():
        if heads[head]:
            warnings.warn(f"{where} holds a head ({name}), which is left: {heads[head]}", stacklevel=4)
    return names


def _tensor_header(tensors: Mapping[str, Tensor], names: Mapping[str, str], part: str, where: Path | str) -> Tensor:
    """A stored tensor without its values."""
    if part not in names:
        raise ValueError(f"{where} lacks the tensor {part}: copy it again, or it is another kind of model")
    return tensors.described(names[part]) if isinstance(tensors, Weights) else tensors[names[part]].to("meta")


def _check_shape(source: Stored, parts: Mapping[str, Tensor], parameter: Tensor, where: Path | str) -> None:
    try:
        shape = source.joined(parts).shape
    except RuntimeError:  # parts that cannot be joined
        shape = None
    if shape != parameter.shape:
        shapes = ", ".join(f"{part} {tuple(each.shape)}" for part, each in parts.items())
        asked = tuple(reversed(parameter.shape) if source.transposed else parameter.shape)  # as it is stored
        raise ValueError(f"{where}: {shapes} does not fit the config, which asks for {asked}")


def _is_same_tensor(copy: Tensor, original: Tensor) -> bool:
    if copy.shape != original.shape:
        return False
    wide = torch.promote_types(copy.dtype, original.dtype)
    return torch.allclose(copy.to(wide), original.to(wide), rtol=0, atol=0, equal_nan=True)


def _check_finite(name: str, values: Tensor, parameter: Tensor, where: Path | str) -> bool:
    """Whether stored numbers are finite; finite ones that the parameter's dtype cannot hold are refused."""
    if not values.numel():
        return True
    ends = torch.stack(values.aminmax())  # one pass without a copy; NaN comes through
    if not ends.isfinite().all():
        return False
    if not ends.to(parameter.dtype).isfinite().all():
        largest = ends.abs().max().item()
        raise ValueError(
            f"{where}: {name} holds {largest:.3g}, which {parameter.dtype} cannot hold: "
            f"from_pretrained(folder, dtype={values.dtype})"
        )
    return True


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
