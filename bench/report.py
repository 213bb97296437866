"""From measurements to figures, and from figures to tables."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from bench.corpus import PAGE_BREAK, CorpusFile
from bench.page_files import BenchPage
from bench.rounds import Measurement
from bench.scores import score

_MIB: Final = 2**20
_DIGITS: Final = 4


def file_records(
    pages: Sequence[BenchPage], measurements: Sequence[Measurement]
) -> list[dict[str, Any]]:
    """Return one record a document: what it is, and how well each contender read it.

    A page that a contender failed on counts as read empty.
    """
    ids: dict[str, list[int]] = defaultdict(list)
    files: dict[str, CorpusFile] = {}
    for page in pages:
        ids[page.file.name].append(page.request.id)
        files[page.file.name] = page.file
    by_id = {page.request.id: page for page in pages}
    records = []
    for name, file in files.items():
        expected = PAGE_BREAK.join(
            file.page_texts[by_id[page_id].request.page_index] for page_id in ids[name]
        )
        scores = {}
        for each in measurements:
            actual = PAGE_BREAK.join(each.answers[page_id].text for page_id in ids[name])
            figures = score(expected, actual, file.language)
            scores[each.contender.name] = {
                "cer": round(figures.cer, _DIGITS),
                "f1": round(figures.f1, _DIGITS),
            }
        records.append({
            "path": name,
            "kind": file.kind,
            "language": file.language,
            "pages": len(ids[name]),
            "scores": scores,
        })
    return records


def contender_record(measured: Measurement, files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of one contender; CER and F1 are means over documents."""
    name = measured.contender.name
    count = len(measured.answers)
    stages: dict[str, float] = defaultdict(float)
    for answer in measured.answers.values():
        for stage, seconds in answer.stages.items():
            stages[stage] += seconds
    scores = [file["scores"][name] for file in files]
    return {
        "name": name,
        "program": measured.program,
        "how": measured.contender.how,
        "pages": count,
        "pages_failed": sum(answer.error is not None for answer in measured.answers.values()),
        "seconds": round(measured.seconds, 2),
        "pages_per_s": round(count / measured.seconds, 3) if measured.seconds else 0.0,
        "cpu_s_per_page": round(measured.cpu_s / max(count, 1), 3),
        "peak_mib": round(measured.peak_bytes / _MIB),
        "stage_s_per_page": {
            stage: round(seconds / max(count, 1), 3) for stage, seconds in stages.items()
        },
        "cer": round(fmean(each["cer"] for each in scores), _DIGITS),
        "f1": round(fmean(each["f1"] for each in scores), _DIGITS),
        "by_language": _grouped(files, name, "language"),
        "by_kind": _grouped(files, name, "kind"),
    }


def markdown(result: Mapping[str, Any]) -> str:
    """Return the tables of a comparison, with what has to be known to judge them."""
    contenders = result["contenders"]
    lines = [
        f"# {result['title']}",
        "",
        *(f"- {note}" for note in result["notes"]),
        "",
        *_speed_table(contenders),
        "",
        *_score_table("language", contenders, result["files"]),
        "",
        *_score_table("kind", contenders, result["files"]),
        "",
        *(f"- {each['name']}: {each['program']}; {each['how']}" for each in contenders),
        *(f"- {name}: not compared: {reason}" for name, reason in result["left_out"].items()),
    ]
    return "\n".join(lines) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [
        f"| {' | '.join(header)} |",
        f"|{'---|' * len(header)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _speed_table(contenders: Sequence[Mapping[str, Any]]) -> list[str]:
    header = (
        "program",
        "pages/s",
        "CPU s/page",
        "peak MiB",
        "CER",
        "F1",
        "failed",
        "stages, s/page",
    )
    return table(
        header,
        (
            (
                each["name"],
                f"{each['pages_per_s']:.2f}",
                f"{each['cpu_s_per_page']:.2f}",
                f"{each['peak_mib']:,}",
                f"{each['cer']:.3f}",
                f"{each['f1']:.3f}",
                f"{each['pages_failed']} of {each['pages']}",
                _stages(each["stage_s_per_page"]),
            )
            for each in contenders
        ),
    )


def _score_table(
    group: str, contenders: Sequence[Mapping[str, Any]], files: Sequence[Mapping[str, Any]]
) -> list[str]:
    counts: dict[str, int] = defaultdict(int)
    for file in files:
        counts[file[group]] += 1
    rows = []
    for value in sorted(counts):
        scores = [each[f"by_{group}"][value] for each in contenders]
        shown = (f"{each['cer']:.3f} / {each['f1']:.3f}" for each in scores)
        rows.append((value, str(counts[value]), *shown))
    return table((group, "files", *(f"{each['name']} CER / F1" for each in contenders)), rows)


def _stages(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{stage} {each:.2f}" for stage, each in seconds.items()) or "unknown"


def _grouped(
    files: Sequence[Mapping[str, Any]], name: str, group: str
) -> dict[str, dict[str, float]]:
    scores: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    for file in files:
        scores[file[group]].append(file["scores"][name])
    return {
        value: {
            figure: round(fmean(each[figure] for each in found), _DIGITS)
            for figure in ("cer", "f1")
        }
        for value, found in sorted(scores.items())
    }
