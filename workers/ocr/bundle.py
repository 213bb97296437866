"""Model bundles: which files, with which hashes, and how their models want their input.

A bundle is a manifest in this package (``bundles/*.json``) and its files in the models folder.
Weights are in no repository and no image; ``pagefleet models fetch`` gets them.
"""

import hashlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workers.ocr.ctc import SPACE
from workers.ocr.errors import ModelFileError
from workers.ocr.inference import ModelFacts, read_model_facts

DEFAULT_BUNDLE = "ppocrv6-small"
_READ_PART_BYTES = 1 << 20
_VERSION_DIGITS = 10

Fraction = Annotated[float, Field(gt=0, lt=1)]


class _Manifest(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WheelSource(_Manifest):
    """Where a file comes from: a path inside the wheel of a pinned distribution."""

    distribution: str
    version: str
    path: str


class BundleFile(_Manifest):
    """One file of a bundle: its name in the models folder, its SHA-256, origin and license."""

    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    license: str
    source: WheelSource


class DetectionModel(_Manifest):
    """The detector.

    Attributes:
        file: the ONNX file.
        size_multiple: the input's height and width are multiples of this.
        mean: of each channel in the order that the model reads (BGR), of pixels in [0, 1].
        std: likewise.
        pixel_threshold: a pixel above this belongs to a text region.
        box_threshold: least detection score of a quad.
        unclip_ratio: how far a region is grown back; see ``geometry.unclipped_size``.
        dilation_px: see ``text_regions.find_text_regions``. How these five were chosen stands in
            docs/detection-parameters.md.
    """

    file: BundleFile
    size_multiple: int = Field(gt=0)
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    pixel_threshold: Fraction
    box_threshold: Fraction
    unclip_ratio: float = Field(gt=0)
    dilation_px: int = Field(ge=1, le=5)


class RecognitionModel(_Manifest):
    """The recognizer.

    Attributes:
        file: the ONNX file.
        crop_height_px: height of its input.
        step_px: crop columns per output step.
        mean: of pixels in [0, 1], all channels.
        std: likewise.
        charset_metadata_key: where in the file's metadata the charset stands, a character a line.
    """

    file: BundleFile
    crop_height_px: int = Field(gt=0)
    step_px: int = Field(gt=0)
    mean: float
    std: float = Field(gt=0)
    charset_metadata_key: str


class OrientationModel(_Manifest):
    """The classifier of page orientation.

    Attributes:
        file: the ONNX file.
        input_side_px: height and width of its input.
        mean: of each channel in the order that the model reads (BGR), of pixels in [0, 1].
        std: likewise.
        sure_from: from this probability on an answer "upright" is believed without a look at the
            text.
    """

    file: BundleFile
    input_side_px: int = Field(gt=0)
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    sure_from: Fraction


class BundleManifest(_Manifest):
    """All that is known about a bundle without its files.

    A bundle without an orientation model reads every page as it stands.
    """

    name: str
    detection: DetectionModel
    recognition: RecognitionModel
    orientation: OrientationModel | None = None
    license_files: tuple[BundleFile, ...]

    @property
    def model_files(self) -> tuple[BundleFile, ...]:
        files = (self.detection.file, self.recognition.file)
        return files if self.orientation is None else (*files, self.orientation.file)

    @property
    def files(self) -> tuple[BundleFile, ...]:
        return (*self.model_files, *self.license_files)

    @property
    def model_version(self) -> str:
        """The name and a hash over the manifest: thresholds change results as weights do."""
        digest = hashlib.sha256(self.model_dump_json(exclude={"license_files"}).encode())
        return f"{self.name}@{digest.hexdigest()[:_VERSION_DIGITS]}"


@dataclass(frozen=True, slots=True)
class ModelBundle:
    """A bundle whose files were found and checked.

    Attributes:
        manifest: what the bundle says about itself.
        models_dir: the folder with its files.
        charset: the characters of classes 1, 2, …; class 0 is the CTC blank.
    """

    manifest: BundleManifest
    models_dir: Path
    charset: tuple[str, ...]

    @property
    def model_version(self) -> str:
        return self.manifest.model_version

    @property
    def detection_path(self) -> Path:
        return self.models_dir / self.manifest.detection.file.name

    @property
    def recognition_path(self) -> Path:
        return self.models_dir / self.manifest.recognition.file.name

    @property
    def orientation_path(self) -> Path | None:
        model = self.manifest.orientation
        return None if model is None else self.models_dir / model.file.name


def read_manifest(name: str = DEFAULT_BUNDLE) -> BundleManifest:
    """Read the manifest of a bundle that this version knows.

    Raises:
        ModelFileError: there is no such bundle, or its manifest is malformed.
    """
    folder = resources.files("workers.ocr") / "bundles"
    known = sorted(entry.name.removesuffix(".json") for entry in folder.iterdir())
    if name not in known:
        raise ModelFileError(f"no model bundle {name!r}; known bundles: {', '.join(known)}")
    return parse_manifest((folder / f"{name}.json").read_text(encoding="utf-8"))


def parse_manifest(text: str) -> BundleManifest:
    """Read a manifest from its JSON text.

    Raises:
        ModelFileError: it is malformed; the message says where.
    """
    try:
        return BundleManifest.model_validate_json(text)
    except ValidationError as exc:
        raise ModelFileError(f"malformed model bundle manifest: {exc}") from exc


def load_bundle(models_dir: Path, name: str = DEFAULT_BUNDLE) -> ModelBundle:
    """Check a bundle's files and read its charset.

    Args:
        models_dir: the folder that ``pagefleet models fetch`` fills.
        name: one of the bundles in this package.

    A file that is missing, has another SHA-256 or whose charset does not fit the output ends in
    a ``ModelFileError`` that names the remedy.
    """
    manifest = read_manifest(name)
    for file in manifest.model_files:
        require_file(models_dir, file)
    facts = read_model_facts(models_dir / manifest.recognition.file.name)
    return ModelBundle(
        manifest=manifest,
        models_dir=models_dir,
        charset=read_charset(facts, manifest.recognition.charset_metadata_key),
    )


def require_file(models_dir: Path, file: BundleFile) -> None:
    """Check that a bundle's file is there and is the pinned one.

    Raises:
        ModelFileError: it is missing or differs.
    """
    path = models_dir / file.name
    if not path.is_file():
        raise ModelFileError(
            f"model file {file.name} is missing from {models_dir}; run `pagefleet models fetch`"
        )
    actual = sha256_of(path)
    if actual != file.sha256:
        raise ModelFileError(
            f"model file {file.name} has SHA-256 {actual[:12]}…, expected {file.sha256[:12]}…;"
            " run `pagefleet models fetch`"
        )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while part := stream.read(_READ_PART_BYTES):
            digest.update(part)
    return digest.hexdigest()


def read_charset(facts: ModelFacts, metadata_key: str) -> tuple[str, ...]:
    r"""Take a recognizer's charset out of its metadata and check it against the output.

    Characters are separated by ``\n`` alone: other line separators, spaces of every width and
    control characters are members of the charset. The space itself is not listed; it is the last
    class.

    Returns:
        The characters of classes 1 to C - 1, the space last.

    Raises:
        ModelFileError: there is no charset under the key, or C is not its length + 2.
    """
    listed = facts.metadata.get(metadata_key)
    if listed is None:
        raise ModelFileError(f"the recognizer's metadata has no charset under {metadata_key!r}")
    charset = (*listed.split("\n"), SPACE)
    if facts.output_class_count != len(charset) + 1:
        raise ModelFileError(
            f"the charset has {len(charset)} characters with the space, but the recognizer has"
            f" {facts.output_class_count} classes, one of them the blank"
        )
    return charset
