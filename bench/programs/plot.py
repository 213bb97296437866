"""Draw figures; runs in the environment that has matplotlib."""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

_MIB = 2**20
_BAR_WIDTH = 0.8


def draw_ocr(result: dict[str, Any], target: Path) -> None:
    """Draw speed, errors and F1 per language, side by side."""
    contenders = result["contenders"]
    names = [each["name"] for each in contenders]
    colors = [f"C{position}" for position in range(len(names))]
    figure, (speed, errors, f1) = plt.subplots(
        1, 3, figsize=(14, 4), width_ratios=(1, 1, 2), layout="constrained"
    )
    parts = ((speed, "pages_per_s", "pages/s", "%.2f"), (errors, "cer", "CER", "%.3f"))
    for axes, figure_name, title, label in parts:
        bars = axes.bar(names, [each[figure_name] for each in contenders], color=colors)
        axes.bar_label(bars, fmt=label)
        axes.margins(y=0.1)
        axes.set_title(title)
        for name in axes.get_xticklabels():
            name.set(rotation=30, ha="right", rotation_mode="anchor")
    languages = sorted(contenders[0]["by_language"])
    width = _BAR_WIDTH / len(names)
    for position, each in enumerate(contenders):
        places = [index + position * width for index in range(len(languages))]
        values = [each["by_language"][language]["f1"] for language in languages]
        f1.bar(places, values, width, label=each["name"], color=colors[position])
    middle = width * (len(names) - 1) / 2
    f1.set_xticks([index + middle for index in range(len(languages))], languages)
    f1.set_title("F1 by language")
    f1.set_ylim(0, 1)
    f1.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), fontsize="small", ncols=3)
    figure.suptitle(result["title"])
    figure.savefig(target, dpi=110)


def draw_scale(result: dict[str, Any], target: Path) -> None:
    """Draw documents a second by tenth, and what the broker held meanwhile."""
    figure, (rate, memory, messages) = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    rates = result["documents_per_s_by_tenth"]
    rate.bar(range(1, len(rates) + 1), rates)
    rate.set_xlabel("tenth of the documents")
    rate.set_title("documents/s")
    seconds = [sample["seconds"] for sample in result["samples"]]
    memory.plot(seconds, [sample["redis_bytes"] / _MIB for sample in result["samples"]])
    memory.set_ylim(bottom=0)
    memory.set_title("MiB in Redis")
    for queue in result["samples"][0]["messages"]:
        waiting = [sample["messages"][queue] for sample in result["samples"]]
        messages.plot(seconds, waiting, label=queue)
    messages.set_title("messages waiting")
    messages.legend()
    for axes in (memory, messages):
        axes.set_xlabel("seconds")
    figure.suptitle(result["title"])
    figure.savefig(target, dpi=110)


def draw_memory(result: dict[str, Any], target: Path) -> None:
    """Draw resident memory over pages."""
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    pages = [sample["pages"] for sample in result["samples"]]
    series = (("engine_bytes", "engine"), ("render_child_bytes", "render child"))
    for key, label in series:
        axes.plot(pages, [sample[key] / _MIB for sample in result["samples"]], label=label)
    axes.set_xlabel("pages read")
    axes.set_ylabel("resident MiB")
    axes.set_ylim(bottom=0)
    axes.set_title(result["title"])
    axes.legend()
    figure.savefig(target, dpi=110)


if __name__ == "__main__":
    mpl.use("Agg")
    kind, source, wanted = sys.argv[1:]
    figures = json.loads(Path(source).read_text(encoding="utf-8"))
    {"ocr": draw_ocr, "memory": draw_memory, "scale": draw_scale}[kind](figures, Path(wanted))
