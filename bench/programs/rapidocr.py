"""RapidOCR as it is published: its own models and defaults, all threads that it may use."""

import argparse
from importlib.metadata import version

from rapidocr import RapidOCR

from bench.programs.answering import PageAnswer, PageRequest, Reader, one_by_one, serve

_STAGES = ("detect", "classify", "recognize")


def open_reader(threads: int) -> tuple[str, Reader]:
    """Load RapidOCR.

    Args:
        threads: of one inference.
    """
    engine = RapidOCR(
        params={
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Global.log_level": "error",
        }
    )

    def read_page(page: PageRequest) -> PageAnswer:
        output = engine(page.image)
        seconds = getattr(output, "elapse_list", None) or ()
        return PageAnswer(
            page.id,
            "\n".join(output.txts or ()),
            {stage: each or 0.0 for stage, each in zip(_STAGES, seconds, strict=False)},
        )

    return f"RapidOCR {version('rapidocr')}", one_by_one(read_page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    serve(lambda: open_reader(arguments.threads))
