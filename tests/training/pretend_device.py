"""A device that is not there: tensors that say they are on it compute on the processor, and refuse to be mixed with
tensors that are not. So a batch, a mask or a factor that was forgotten to be moved fails here as on a graphics card."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("lazy:0")
"""A kind of device that this build of torch knows by name and has no code for."""
BETWEEN_DEVICES = ("aten::_to_copy", "aten::copy_")


class MixedDevicesError(RuntimeError):
    """An operation had tensors of two devices."""


class OnDevice(torch.Tensor):
    """A tensor that says it is on the pretend device; `inner` holds its numbers."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls: type[OnDevice], inner: torch.Tensor) -> OnDevice:
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            device=DEVICE,
        )  # fmt: skip
        made.inner = inner
        return made

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"OnDevice({self.inner})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied = OnDevice(self.inner.detach().clone())
            is_parameter = isinstance(self, torch.nn.Parameter)
            memo[id(self)] = torch.nn.Parameter(copied, requires_grad=self.requires_grad) if is_parameter else copied
        return memo[id(self)]

    def tolist(self) -> Any:
        return self.inner.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError("numbers of a device are copied to the processor first")

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        """Where the numbers lie: tied weights are known by it when a model is saved."""
        return self.inner.untyped_storage()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Everywhere(TorchDispatchMode):
    """Also sees what makes tensors on the device and moves them there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _MadeThere(TorchFunctionMode):
    """`torch.tensor` fills a tensor where it is made, which the pretend device has no memory for: it is made on the
    processor and moved."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        if func is torch.tensor and device is not None and torch.device(device).type == DEVICE.type:
            return func(*args, **{**kwargs, "device": "cpu"}).to(device)
        return func(*args, **kwargs)


@contextmanager
def pretend_device() -> Iterator[torch.device]:
    # A module that moves keeps its parameters, and so tied weights stay tied, as between real devices.
    swapped = torch.__future__.get_swap_module_params_on_conversion()
    # Tensors of the inference mode have no views that a subclass could label.
    inference, torch.inference_mode = torch.inference_mode, torch.no_grad  # type: ignore[misc,assignment]
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with _Everywhere(), _MadeThere():
            yield DEVICE
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swapped)
        torch.inference_mode = inference  # type: ignore[misc]


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors: list[torch.Tensor] = []
    plain = _mapped(args, tensors), _mapped(kwargs, tensors)
    on_device = [value for value in tensors if isinstance(value, OnDevice)]
    name = func._schema.name
    # A single number of the processor may be used anywhere, as with graphics cards.
    mixed = on_device and any(not isinstance(value, OnDevice) and value.dim() for value in tensors)
    if mixed and name not in BETWEEN_DEVICES:
        raise MixedDevicesError(f"{name} mixes devices")
    target = kwargs.get("device")
    stays = bool(on_device) if target is None else torch.device(target).type == DEVICE.type
    if target is not None:
        plain[1]["device"] = torch.device("cpu")
    result = func(*plain[0], **plain[1])
    if name == "aten::copy_":
        return args[0]
    return _labeled(result, {id(value.inner): value for value in on_device}) if stays else result


def _mapped(value: Any, seen: list[torch.Tensor]) -> Any:
    """The arguments of an operation with the numbers behind tensors of the device; all tensors are put into `seen`. By
    hand, because it is done for each operation, and torch's own walk through any structure takes half of the time."""
    if isinstance(value, torch.Tensor):
        seen.append(value)
        return value.inner if isinstance(value, OnDevice) else value
    if isinstance(value, tuple | list):
        return type(value)([_mapped(part, seen) for part in value])
    if isinstance(value, dict):
        return {name: _mapped(part, seen) for name, part in value.items()}
    return value


def _labeled(value: Any, known: dict[int, OnDevice]) -> Any:
    """A result with its tensors on the device; an argument that is returned stays the same tensor."""
    if isinstance(value, torch.Tensor):
        if isinstance(value, OnDevice):
            return value
        return known[id(value)] if id(value) in known else OnDevice(value)
    if isinstance(value, tuple | list):
        return type(value)([_labeled(part, known) for part in value])
    return value
