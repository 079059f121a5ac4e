"""What vendors' data sheets say of accelerators: to tell how well one is used, and what a run on many would take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """One device as jax counts them. Rates are a second; a GB is 1e9 bytes."""

    kind: str
    """What jax calls it, or a part of that."""
    peak_flop: float
    """Dense bfloat16."""
    memory_gb: float
    near_gb: float
    """To the other devices of its machine (NVLink) or of its slice (ICI), one way."""
    far_gb: float
    """To devices of other machines, one way: its share of the network cards that such machines usually have."""
    n_near: int = 8
    """Devices that are near each other."""
    is_gpu: bool = True
    """GPUs have cuDNN's attention, which keeps no product of all positions with all."""


_SLICE = 256  # chips of a TPU slice, which all are near each other

DEVICES = {
    "h100": Device("H100", 989e12, 80, 450, 50),
    "h200": Device("H200", 989e12, 141, 450, 50),
    "b200": Device("B200", 2250e12, 180, 900, 50),
    "a100": Device("A100", 312e12, 80, 300, 25),
    "l40s": Device("L40S", 362e12, 48, 32, 12.5),
    "tpu-v3": Device("TPU v3", 61.5e12, 16, 80, 3, _SLICE, is_gpu=False),  # a core
    "tpu-v4": Device("TPU v4", 275e12, 32, 150, 6, _SLICE, is_gpu=False),
    "tpu-v5e": Device("TPU v5 lite", 197e12, 16, 100, 6, _SLICE, is_gpu=False),
    "tpu-v5p": Device("TPU v5p", 459e12, 95, 300, 6, _SLICE, is_gpu=False),
    "tpu-v6e": Device("TPU v6 lite", 918e12, 32, 224, 12, _SLICE, is_gpu=False),
}


def device_of_kind(kind: str) -> Device | None:
    """The entry of a device by the name that jax has for it."""
    return next((device for device in DEVICES.values() if device.kind in kind), None)
