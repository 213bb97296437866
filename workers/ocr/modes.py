"""Modes of processing, orders of stated text, routes of pages, and the reasons for them."""

from typing import Literal

Mode = Literal["auto", "ocr", "text"]
TextOrder = Literal["reading", "file"]
Route = Literal["text", "ocr", "mixed", "blank"]
RouteReason = Literal[
    "mode",
    "image_file",
    "sound_layer",
    "image_regions",
    "no_ink",
    "no_layer",
    "no_visible_layer",
    "invisible_text",
    "unmapped_font",
    "unknown_characters",
    "implausible_text",
    "text_under_image",
    "text_without_ink",
    "ink_without_text",
    "layer_too_long",
]
