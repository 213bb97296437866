"""Tesseract, the system's own program, told the language of each page.

One process a page, as its users run it; loading its data is part of its time.
"""

import argparse
import subprocess

from bench.programs.answering import PageAnswer, PageRequest, Reader, one_by_one, serve

# `jpn` brings its vertical sister along by itself.
LANGUAGES = {
    "de": "deu",
    "en": "eng",
    "fr": "fra",
    "ja": "jpn",
    "mul": "eng+deu+fra",
    "nl": "nld",
    "zh": "chi_sim",
}
_PAGE_TIMEOUT_S = 300


def open_reader(program: str) -> tuple[str, Reader]:
    """Find out the version.

    Args:
        program: path of the executable.
    """
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)  # noqa: S603 - given by the harness

    def read_page(page: PageRequest) -> PageAnswer:
        language = LANGUAGES.get(page.language, "eng")
        done = subprocess.run(  # noqa: S603 - given by the harness
            [program, page.image, "stdout", "-l", language],
            capture_output=True,
            timeout=_PAGE_TIMEOUT_S,
            check=True,
        )
        return PageAnswer(page.id, done.stdout.decode(errors="replace"))

    return shown.stdout.splitlines()[0], one_by_one(read_page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    serve(lambda: open_reader(arguments.program))
