"""faster-paddle: the same models in Rust, many pages at a time, as its own page recommends."""

import argparse
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import faster_paddle

from bench.programs.answering import PageAnswer, PageRequest, Reader, one_by_one, serve

# Its own default.
_IMAGES_IN_MEMORY = 4


def open_reader(size: str, threads: int) -> tuple[str, Reader]:
    """Load faster-paddle.

    Args:
        size: ``tiny`` or ``small``.
        threads: of the whole program.
    """
    engine = faster_paddle.OcrEngine(model_size=size, threads=threads)

    def read_page(page: PageRequest) -> PageAnswer:
        return _answer(page, engine.ocr(Path(page.image).read_bytes()))

    read_alone = one_by_one(read_page)

    def read(pages: Sequence[PageRequest]) -> Iterator[PageAnswer]:
        images = [Path(page.image).read_bytes() for page in pages]
        try:
            results = engine.ocr_batch(images, batch_size=_IMAGES_IN_MEMORY)
        except Exception:  # noqa: BLE001 - one bad page fails its whole batch
            yield from read_alone(pages)
            return
        yield from (_answer(page, each) for page, each in zip(pages, results, strict=True))

    return f"faster-paddle {version('faster-paddle')} {size}", read


def _answer(page: PageRequest, result: dict[str, Any]) -> PageAnswer:
    return PageAnswer(page.id, result["structured_text"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=("tiny", "small"), required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    serve(lambda: open_reader(arguments.size, arguments.threads))
