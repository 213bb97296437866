"""This core, as a worker's slot has it: a renderer in a child, an engine, pages in a stream."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from pydantic import ValidationError

from bench.programs.answering import PageAnswer, PageRequest, Reader, serve
from workers import devices
from workers.engine_setup import make_engine, render_limits
from workers.ocr.engine import OcrEngine
from workers.ocr.errors import DocumentError
from workers.ocr.options import OcrOptions
from workers.ocr.page_image import PageFailure
from workers.ocr.page_reader import PageReader
from workers.ocr.page_text import page_text
from workers.ocr.rendered_page import RenderedPage
from workers.ocr.result import PageResult, page_json
from workers.page_renderer import PageRenderer
from workers.settings import OcrSettings, read_settings


def open_core(
    *, profile: str, device: str, slots: int = 1, slot: int = 0, has_crop_cache: bool = True
) -> tuple[OcrEngine, PageRenderer]:
    """Make engine and renderer as a worker does.

    Args:
        profile: see ``workers.ocr.profiles``.
        device: ``auto``, ``cpu`` or ``cuda``.
        slots: processes that share the cores and the GPUs.
        slot: which of them this is.
        has_crop_cache: whether a crop that was read before is remembered. Not where the same pages
            are read again to measure speed: an archive has no such luck.
    """
    changed: dict[str, object] = {"profile": profile}
    if not has_crop_cache:
        changed["crop_cache_count"] = 0
    settings = read_settings(OcrSettings).model_copy(update=changed)
    wanted = OcrSettings.model_validate({"device": device}).device
    chosen = devices.choose_device(wanted, slot=slot, gpu_count=devices.count_gpus())
    devices.pin(chosen)
    return make_engine(settings, chosen, slots=slots), PageRenderer(render_limits(settings))


def open_reader(
    *, profile: str, device: str, route: str, text_order: str, slots: int, slot: int
) -> tuple[str, Reader]:
    """Load the models and say what runs.

    Raises:
        SystemExit: this version has no such route or order.
    """
    try:
        options = OcrOptions.model_validate({"mode": route, "text_order": text_order})
    except ValidationError as error:
        raise SystemExit(
            f"this version has no route {route!r}, or no order {text_order!r}"
        ) from error
    engine, renderer = open_core(
        profile=profile, device=device, slots=slots, slot=slot, has_crop_cache=False
    )

    reader = PageReader(engine)

    def read(pages: Sequence[PageRequest]) -> Iterator[PageAnswer]:
        rendered = stream_pages(renderer, pages, options)
        for page, outcome in zip(pages, reader.read_pages(rendered), strict=True):
            yield _answer(page, outcome)

    return f"Pagefleet {engine.model_version}, route {route}, text order {text_order}", read


def stream_pages(
    renderer: PageRenderer, pages: Sequence[PageRequest], options: OcrOptions
) -> Iterator[RenderedPage | PageFailure]:
    """Render pages of many documents one after the other, so that the engine sees one stream.

    Their indexes are counted through: two pages of a stream must not have the same.
    """
    rendered = _pages_of_documents(renderer, pages, options)
    for number, page in enumerate(rendered):
        yield replace(page, page_index=number)


def _pages_of_documents(
    renderer: PageRenderer, pages: Sequence[PageRequest], options: OcrOptions
) -> Iterator[RenderedPage | PageFailure]:
    for source, group in groupby(pages, key=lambda page: page.source):
        indexes = [page.page_index for page in group]
        try:
            renderer.open(Path(source))
        except (DocumentError, OSError) as error:
            yield from (PageFailure(index, "damaged", str(error)) for index in indexes)
            continue
        yield from renderer.pages(
            indexes, dpi=options.dpi, mode=options.mode, text_order=options.text_order
        )


def _answer(page: PageRequest, outcome: PageResult | PageFailure) -> PageAnswer:
    if isinstance(outcome, PageFailure):
        return PageAnswer(page.id, "", error=f"{outcome.code}: {outcome.message}")
    shown = page_json(outcome)
    return PageAnswer(page.id, page_text(shown), dict(shown["seconds"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--route", required=True)
    parser.add_argument("--text-order", required=True)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--slot", type=int, default=0)
    arguments = parser.parse_args()
    serve(
        lambda: open_reader(
            profile=arguments.profile,
            device=arguments.device,
            route=arguments.route,
            text_order=arguments.text_order,
            slots=arguments.slots,
            slot=arguments.slot,
        )
    )
