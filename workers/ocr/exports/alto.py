"""ALTO 4.2: page, text block, line and string, in pixels of the upright page image."""

from collections.abc import Iterable, Iterator
from typing import Final

from workers.ocr.exports.escaping import xml_text
from workers.ocr.exports.page_view import (
    Box,
    ExportBlock,
    ExportLine,
    Header,
    Page,
    blocks_of,
    is_failed,
    notices,
)

_HEAD: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="\
http://www.loc.gov/standards/alto/ns-v4# \
http://www.loc.gov/standards/alto/v4/alto-4-2.xsd" SCHEMAVERSION="4.2">
<Description>
<MeasurementUnit>pixel</MeasurementUnit>
<sourceImageInformation>
<fileName>{filename}</fileName>
<fileIdentifier fileIdentifierLocation="sha256">{sha256}</fileIdentifier>
<documentIdentifier>{document_id}</documentIdentifier>
</sourceImageInformation>
<Processing ID="recognition">
<processingCategory>contentGeneration</processingCategory>
<processingStepDescription>{state}</processingStepDescription>
<processingSoftware>
<softwareName>Pagefleet</softwareName>
<softwareVersion>{version}</softwareVersion>
</processingSoftware>
</Processing>
</Description>
<Layout>
"""


def alto(header: Header, pages: Iterable[Page]) -> Iterator[str]:
    """Yield the document, a page a part. ``WC`` of a string is the confidence of its line.

    A page without a result has the quality ``Missing``; what is amiss with a page stands in its
    ``QUALITY_DETAIL``.
    """
    source = header["source"]
    yield _HEAD.format(
        filename=xml_text(source["filename"]),
        sha256=xml_text(source["sha256"]),
        document_id=xml_text(header["document_id"]),
        state=xml_text(header["state"]),
        version=xml_text(header["model_version"] or ""),
    )
    for page in pages:
        yield "".join(_page(page))
    yield "</Layout>\n</alto>\n"


def _page(page: Page) -> Iterator[str]:
    number = page["page_number"]
    details = " ".join(notices(page))
    detail = f' QUALITY_DETAIL="{xml_text(details)}"' if details else ""
    opening = f'<Page ID="page_{number}" PHYSICAL_IMG_NR="{number}"'
    if is_failed(page):
        yield f'{opening} QUALITY="Missing"{detail}/>\n'
        return
    width, height = page["width_px"], page["height_px"]
    sizes = f'HEIGHT="{height}" WIDTH="{width}"'
    confidence = page["mean_confidence"]
    certainty = "" if confidence is None else f' PC="{confidence:g}"'
    yield f"{opening} {sizes}{detail}{certainty}>\n"
    yield f'<PrintSpace {sizes} HPOS="0" VPOS="0">\n'
    for block in blocks_of(page):
        yield from _block(block, number)
    yield "</PrintSpace>\n</Page>\n"


def _block(block: ExportBlock, number: int) -> Iterator[str]:
    yield f'<TextBlock ID="block_{number}_{block.id}" {_place(block.box)}>\n'
    for line in block.lines:
        yield from _line(line, number)
    yield "</TextBlock>\n"


def _line(line: ExportLine, number: int) -> Iterator[str]:
    name = f"{number}_{line.id}"
    points = " ".join(f"{x:g},{y:g}" for x, y in line.polygon)
    yield f'<TextLine ID="line_{name}" {_place(line.box)}>\n'
    yield f'<Shape><Polygon POINTS="{points}"/></Shape>\n'
    for place, word in enumerate(line.words):
        yield f'<String ID="string_{name}_{place}" {_place(word.box)} WC="{line.confidence:g}"'
        yield f' CONTENT="{xml_text(word.text)}"/>'
        yield "<SP/>\n" if word.is_spaced else "\n"
    yield "</TextLine>\n"


def _place(box: Box) -> str:
    x_min, y_min, x_max, y_max = box
    width, height = round(x_max - x_min, 1), round(y_max - y_min, 1)
    return f'HEIGHT="{height:g}" WIDTH="{width:g}" HPOS="{x_min:g}" VPOS="{y_min:g}"'
