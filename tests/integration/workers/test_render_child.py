"""What the child program does on its own side."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]

NOISY = """
from workers.limited_child import send, take_protocol_pipes
requests, answers = take_protocol_pipes()
print("noise of a library", flush=True)
import os
os.system("echo noise of a program")
send(answers, 7, {"ok": {"heard": requests.readline().decode()}})
"""


def test_only_answers_reach_standard_output() -> None:
    outcome = subprocess.run(  # noqa: S603 - made here
        [sys.executable, "-c", NOISY],
        input=b"a request\n",
        capture_output=True,
        cwd=REPOSITORY,
        check=True,
    )

    assert outcome.stdout == b'{"id": 7, "ok": {"heard": "a request\\n"}}\n'
    assert outcome.stderr == b"noise of a library\nnoise of a program\n"


def test_the_child_loads_no_more_than_it_needs() -> None:
    listing = "import sys, workers.render_child; print(*sys.modules)"

    outcome = subprocess.run(  # noqa: S603 - made here
        [sys.executable, "-c", listing], capture_output=True, cwd=REPOSITORY, check=True, text=True
    )

    assert {"pymupdf", "PIL"} <= set(outcome.stdout.split())
    assert not {"cv2", "onnxruntime", "celery", "boto3", "sqlalchemy", "pydantic"} & set(
        outcome.stdout.split()
    )


def test_the_owner_loads_neither_pymupdf_nor_pillow() -> None:
    listing = "import sys, workers.page_renderer; print(*sys.modules)"

    outcome = subprocess.run(  # noqa: S603 - made here
        [sys.executable, "-c", listing], capture_output=True, cwd=REPOSITORY, check=True, text=True
    )

    assert not {"pymupdf", "PIL"} & set(outcome.stdout.split())
