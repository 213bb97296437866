"""What an operator may set about the engine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workers.ocr.inference import Device

EngineName = Literal["onnxruntime", "openvino"]
EngineChoice = Literal["auto", "onnxruntime", "openvino"]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Only ``max_crops``, ``device`` and ``engine`` can change a result.

    Attributes:
        rec_chunk_size: crops that go through the recognizer together at most, 1 to 256.
        max_minibatch_px_columns: crops times padded width of one minibatch at most.
        max_crops: text lines that are recognized on one page at most.
        threads: CPU cores that may be used at once; each works on a page or crop of its own.
        device: where the models run.
        engine: the runtime; ``auto`` takes OpenVINO where it is installed and the processor
            multiplies bfloat16 in hardware, else onnxruntime.
        crop_cache_count: crops whose reading is kept, about 1.3 KB each; 0 for none.
        inference_timeout_s: for one run of a model; past it the process ends itself.
        gpu_memory_bytes: what the card has; None when unknown, for no limit either.
        slot_memory_bytes: this slot's share of it, for both models together.
        cache_dir: for graphs that were prepared for a device; None for no cache.
    """

    rec_chunk_size: int = 256
    max_minibatch_px_columns: int = 262_144
    max_crops: int = 2_000
    threads: int = 1
    device: Device = "cpu"
    engine: EngineChoice = "onnxruntime"
    crop_cache_count: int = 20_000
    inference_timeout_s: float = 120.0
    gpu_memory_bytes: int | None = None
    slot_memory_bytes: int | None = None
    cache_dir: Path | None = None
