"""A state as strict JSON beside named tensors: what a checkpoint can hold, and how it comes back exactly.

JSON keeps dicts, lists, strings, bools, None, finite floats and ints below 2^53 as they are. Everything else is an
object with the key "$": tensor, tuple, int, float (NaN and infinities, by their bits), or dict (with keys that are not
plain strings). Tensors are named by their place in the tree, as JSON pointers (RFC 6901): "/system/0.weight".
"""

import struct
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

__all__ = []  # for checkpoints

DEPTH = 100  # deeper trees are mistakes, such as a dict that holds itself
PLAIN = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 uint16 uint32 uint64 bool".split()
PAIRS = {"complex64": "float32", "complex128": "float64"}  # kept as real and imaginary parts
BYTES = "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2".split()

BROKEN = (ValueError, LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError, struct.error)


def pack(state: Any) -> tuple[Any, dict[str, Tensor]]:
    """A state as (what json.dumps takes, the tensors by name: on the CPU, contiguous, none sharing memory).

    A tensor that stands at several places is kept once and comes back as one; views that merely overlap come back
    equal, each with memory of its own. Subclasses of the plain kinds come back as the plain kinds.
    """
    packing = _Packing()
    return packing.node(state, "", 0), packing.tensors


def unpack(tree: Any, tensors: Mapping[str, Tensor], depth: int = 0) -> Any:
    """The state that was packed; an error of one of the kinds in BROKEN if the tree is none."""
    if depth > DEPTH:
        raise ValueError(f"it is nested deeper than {DEPTH}")

    def inner(item: Any) -> Any:
        return unpack(item, tensors, depth + 1)

    if isinstance(tree, list):
        return [inner(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "$" not in tree:
        return {key: inner(value) for key, value in tree.items()}
    kind = tree["$"]
    if kind == "tensor":
        return _stored_tensor(tree, tensors)
    if kind == "tuple":
        return tuple(inner(item) for item in tree["items"])
    if kind == "dict":
        return {_stored_key(inner(key)): inner(value) for key, value in tree["items"]}
    if kind == "int":
        return int(tree["hex"], 16)
    if kind == "float":
        return struct.unpack(">d", bytes.fromhex(tree["bits"]))[0]
    raise ValueError(f"it holds an unknown kind of value, {kind!r}")


class _Packing:
    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._names: dict[tuple[Any, ...], str] = {}
        self._storages: set[int] = set()
        self._held: list[Tensor] = []  # an address tells tensors apart only as long as all of them live

    def node(self, value: Any, place: str, depth: int) -> Any:
        if depth > DEPTH:
            raise ValueError(f"state must not be nested deeper than {DEPTH}, is at state{place[:60]}...")
        if value is None or isinstance(value, bool | str):
            return value if value is None or isinstance(value, bool) else str(value)
        if isinstance(value, int):
            return int(value) if abs(value) < 2**53 else {"$": "int", "hex": hex(value)}
        if isinstance(value, float):
            finite = float("-inf") < value < float("inf")
            return float(value) if finite else {"$": "float", "bits": struct.pack(">d", value).hex()}
        if isinstance(value, Tensor):
            return self.tensor(value, place)
        if isinstance(value, Mapping):
            return self.mapping(value, place, depth)
        if isinstance(value, list | tuple):
            items = [self.node(item, f"{place}/{index}", depth + 1) for index, item in enumerate(value)]
            return items if isinstance(value, list) else {"$": "tuple", "items": items}
        kinds = "tensors, numbers, strings, bools, None, dicts, lists and tuples"
        raise TypeError(f"state{place} must be made of {kinds}, got {_type_name(value)}: convert it")

    def mapping(self, value: Mapping[Any, Any], place: str, depth: int) -> Any:
        for key in value:
            if not isinstance(key, str | int) or isinstance(key, bool):
                raise TypeError(f"keys of state{place} must be strings or ints, got {key!r}: convert it")
        places = {key: f"{place}/{str(key).replace('~', '~0').replace('/', '~1')}" for key in value}
        items = {key: self.node(item, places[key], depth + 1) for key, item in value.items()}
        if "$" not in items and all(isinstance(key, str) for key in items):
            return {str(key): item for key, item in items.items()}
        return {"$": "dict", "items": [[self.node(key, place, depth + 1), item] for key, item in items.items()]}

    def tensor(self, value: Tensor, place: str) -> dict[str, Any]:
        dtype = str(value.dtype).removeprefix("torch.")
        tensor = value.detach()
        if type(tensor) is not Tensor or value.layout is not torch.strided or value.is_meta:
            raise TypeError(f"state{place} must be a dense tensor of its own, got {_type_name(value)}: convert it")
        if dtype not in (*PLAIN, *PAIRS, *BYTES):
            raise TypeError(f"state{place} must have a dtype that files can hold, got {dtype}: convert it")
        where = (value.device, value.data_ptr(), dtype, value.shape, value.stride(), value.is_conj(), value.is_neg())
        name = self._names.get(where) if value.numel() else None
        if name is None:
            name = self._names[where] = self._free_name(place)
            self._held.append(value)
            self.tensors[name] = self._own_tensor(tensor, dtype)
        return {"$": "tensor", "name": name, "dtype": dtype, "shape": list(value.shape)}

    def _own_tensor(self, tensor: Tensor, dtype: str) -> Tensor:
        """Dense in memory on the CPU, in a dtype that every safetensors reads, and sharing with no other."""
        tensor = tensor.cpu().resolve_conj().resolve_neg().contiguous()
        tensor = torch.view_as_real(tensor) if dtype in PAIRS else tensor
        tensor = tensor.view(torch.uint8) if dtype in BYTES else tensor
        storage = tensor.untyped_storage().data_ptr()
        if storage in self._storages:
            tensor = tensor.clone()
        self._storages.add(storage)
        return tensor

    def _free_name(self, place: str) -> str:
        name = place.encode("utf-8", "replace").decode()  # a file's name may come in as half a character
        while name in self.tensors:  # keys 1 and "1" of one dict
            name += "~"
        return name


def _stored_tensor(leaf: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Tensor:
    name, dtype, shape = leaf["name"], leaf["dtype"], leaf["shape"]
    if name not in tensors:
        raise ValueError(f"the tensor {name} is missing")
    tensor = tensors[name]
    if dtype in PAIRS:
        tensor = torch.view_as_complex(tensor)
    elif dtype in BYTES:
        tensor = tensor.view(getattr(torch, dtype))
    if str(tensor.dtype) != f"torch.{dtype}" or list(tensor.shape) != shape:
        raise ValueError(f"the tensor {name} is {tensor.dtype} {list(tensor.shape)}, not {dtype} {shape}")
    return tensor


def _stored_key(key: Any) -> "str | int":
    if not isinstance(key, str | int):
        raise ValueError("it holds a key that is no string or int")
    return key


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
