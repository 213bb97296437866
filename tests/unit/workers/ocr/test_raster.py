import io
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image, ImageDraw, PngImagePlugin, TiffImagePlugin

from workers.ocr.errors import (
    DamagedPageError,
    PageTooLargeError,
    UnreadableDocumentError,
    UnsupportedMediaTypeError,
)
from workers.ocr.formats import MediaType, sniff
from workers.ocr.raster import FALLBACK_DPI, RasterSource, decode_jpeg
from workers.ocr.rendered_page import RenderedPage

MAX_PIXELS = 60_000_000
GREY_RAMP = np.arange(256, dtype=np.uint16).reshape(16, 16)


def opened(path: Path) -> RasterSource:
    media_type = sniff(path.read_bytes())
    assert media_type is not None
    return RasterSource(path, media_type=media_type, max_pages=100)


def rendered(path: Path, *, page_index: int = 0, max_pixels: int = MAX_PIXELS) -> RenderedPage:
    with opened(path) as source:
        return source.render(page_index, dpi=300, max_pixels=max_pixels)


def saved(folder: Path, image: Image.Image, file_format: str, **options: object) -> Path:
    image.save(folder / "image", file_format, **options)
    return folder / "image"


def left_half_black(mode: str = "RGB", size: tuple[int, int] = (40, 20)) -> Image.Image:
    image = Image.new(mode, size, "white")
    ImageDraw.Draw(image).rectangle((0, 0, size[0] // 2 - 1, size[1]), fill="black")
    return image


@pytest.mark.parametrize("file_format", ["PNG", "TIFF", "BMP", "WEBP", "JPEG"])
def test_every_format_is_read(tmp_path: Path, file_format: str) -> None:
    page = rendered(saved(tmp_path, left_half_black(), file_format))

    assert page.pixels.shape == (20, 40, 3)
    assert page.pixels.dtype == np.uint8
    assert page.pixels[10, 5].max() < 10
    assert page.pixels[10, 35].min() > 245


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "RGBA", "LA", "YCbCr", "LAB"])
def test_every_color_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    image = left_half_black("RGB")
    converted = lab_from(image) if mode == "LAB" else image.convert(mode)

    page = rendered(saved(tmp_path, converted, "TIFF"))

    assert page.pixels[10, 5].max() < 10
    assert page.pixels[10, 35].min() > 245


def lab_from(image: Image.Image) -> Image.Image:
    bands = np.zeros((*image.size[::-1], 3), np.uint8)
    bands[..., 0] = np.asarray(image.convert("L"))
    return Image.frombytes("LAB", image.size, bands.tobytes())


def test_a_16_bit_scan_keeps_its_grey(tmp_path: Path) -> None:
    page = rendered(saved(tmp_path, Image.fromarray(GREY_RAMP * 257), "PNG"))

    assert (page.pixels[..., 0] == GREY_RAMP).all()


def test_a_12_bit_scan_in_16_bits_is_not_black(tmp_path: Path) -> None:
    page = rendered(saved(tmp_path, Image.fromarray(GREY_RAMP * 16), "TIFF"))

    assert (page.pixels[..., 0] == GREY_RAMP).all()


def test_a_16_bit_scan_that_counts_from_white_is_turned(tmp_path: Path) -> None:
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[ExifTags.Base.PhotometricInterpretation] = 0
    path = saved(tmp_path, Image.fromarray(GREY_RAMP * 257), "TIFF", tiffinfo=tags)

    assert (rendered(path).pixels[..., 0] == 255 - GREY_RAMP).all()


def test_floating_grey_is_stretched_to_its_range(tmp_path: Path) -> None:
    values = GREY_RAMP.astype(np.float32) / 255

    page = rendered(saved(tmp_path, Image.fromarray(values), "TIFF"))

    assert (page.pixels.min(), page.pixels.max()) == (0, 255)


def writing_on_nothing(ink: tuple[int, int, int]) -> Image.Image:
    image = Image.new("RGBA", (60, 20), (*ink, 0))
    ImageDraw.Draw(image).rectangle((10, 8, 50, 11), fill=(*ink, 255))
    return image


@pytest.mark.parametrize(
    ("ink", "paper"), [((0, 0, 0), 255), ((255, 255, 255), 0), ((250, 240, 90), 0)]
)
def test_writing_on_transparency_stays_readable(
    tmp_path: Path, ink: tuple[int, int, int], paper: int
) -> None:
    pixels = rendered(saved(tmp_path, writing_on_nothing(ink), "PNG")).pixels

    assert pixels[9, 30].tolist() == list(ink)
    assert pixels[0, 0].tolist() == [paper] * 3


def test_the_clear_corners_of_a_page_are_white(tmp_path: Path) -> None:
    image = Image.new("RGBA", (60, 60), (230, 225, 215, 255))
    image.paste((0, 0, 0, 0), (0, 0, 10, 10))

    assert rendered(saved(tmp_path, image, "PNG")).pixels[0, 0].tolist() == [255] * 3


def test_a_transparent_palette_color_is_no_color(tmp_path: Path) -> None:
    image = left_half_black("RGB").quantize(2)
    path = saved(tmp_path, image, "PNG", transparency=image.getpixel((30, 10)))

    assert rendered(path).pixels[10, 30].tolist() == [255] * 3


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize(
    ("orientation", "rotation_deg", "is_sideways"),
    [
        (1, 0, False),
        (2, 0, False),
        (3, 180, False),
        (4, 180, False),
        (5, 270, True),
        (6, 90, True),
        (7, 90, True),
        (8, 270, True),
    ],
)
def test_exif_orientation_is_applied(
    tmp_path: Path, file_format: str, orientation: int, rotation_deg: int, *, is_sideways: bool
) -> None:
    upright = left_half_black("L", (80, 48))
    undo = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }[orientation]
    stored = upright if undo is None else upright.transpose(undo)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    page = rendered(saved(tmp_path, stored.convert("RGB"), file_format, exif=exif))

    assert (stored.size != upright.size) == is_sideways
    assert page.rotation_deg == rotation_deg
    assert np.abs(page.pixels[..., 0].astype(int) - np.asarray(upright)).mean() < 3


@pytest.mark.parametrize(
    ("declared", "dpi"),
    [((300, 300), 300), ((1, 1), FALLBACK_DPI), ((4800, 4800), FALLBACK_DPI), (None, FALLBACK_DPI)],
)
def test_only_a_plausible_resolution_is_believed(
    tmp_path: Path, declared: tuple[int, int] | None, dpi: float
) -> None:
    options = {} if declared is None else {"dpi": declared}

    page = rendered(saved(tmp_path, left_half_black(), "TIFF", **options))

    assert page.dpi == pytest.approx(dpi, rel=0.001)


def test_a_resolution_divided_by_zero_is_not_believed(tmp_path: Path) -> None:
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[ExifTags.Base.XResolution] = TiffImagePlugin.IFDRational(300, 0)
    tags[ExifTags.Base.YResolution] = TiffImagePlugin.IFDRational(300, 0)
    tags[ExifTags.Base.ResolutionUnit] = 2

    page = rendered(saved(tmp_path, left_half_black(), "TIFF", tiffinfo=tags))

    assert page.dpi == FALLBACK_DPI


def test_a_coarse_fax_is_stretched_to_square_pixels(tmp_path: Path) -> None:
    fax = left_half_black("1", (204, 98))

    page = rendered(saved(tmp_path, fax, "TIFF", dpi=(204, 98)))

    assert page.pixels.shape == (204, 204, 3)
    assert page.dpi == 204


def test_a_sideways_fax_is_stretched_along_the_right_axis(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    path = saved(tmp_path, left_half_black("RGB", (204, 98)), "JPEG", dpi=(204, 98), exif=exif)

    assert rendered(path).pixels.shape == (204, 204, 3)


def test_a_fine_fax_is_left_as_it_is(tmp_path: Path) -> None:
    path = saved(tmp_path, left_half_black("1", (204, 196)), "TIFF", dpi=(204, 196))

    assert rendered(path).pixels.shape == (196, 204, 3)


def test_a_stretched_fax_keeps_to_the_pixel_cap(tmp_path: Path) -> None:
    path = saved(tmp_path, left_half_black("1", (204, 98)), "TIFF", dpi=(204, 98))

    with pytest.raises(PageTooLargeError, match="204 x 98 dpi"):
        rendered(path, max_pixels=30_000)


def test_every_frame_of_a_tiff_is_a_page(tmp_path: Path) -> None:
    frames = [Image.new("L", (9, 9), level) for level in (10, 20, 30)]
    path = saved(tmp_path, frames[0], "TIFF", save_all=True, append_images=frames[1:])

    assert opened(path).page_count == 3
    assert [rendered(path, page_index=index).pixels[0, 0, 0] for index in (2, 0, 1)] == [30, 10, 20]


@pytest.mark.parametrize("compression", ["raw", "group4", "tiff_lzw", "jpeg"])
@pytest.mark.parametrize("big_tiff", [False, True])
def test_a_thumbnail_is_no_page(tmp_path: Path, compression: str, *, big_tiff: bool) -> None:
    mode = "1" if compression == "group4" else "L"
    frames = [  # what NewSubfileType says of it, and how black it is
        (Image.new(mode, (64, 64), 0), 0),
        (Image.new(mode, (16, 16), 255), 1),
        (Image.new(mode, (64, 64), 255), 2),
    ]
    with TiffImagePlugin.AppendingTiffWriter(tmp_path / "image", new=True) as writer:
        for image, kind in frames:
            tags = TiffImagePlugin.ImageFileDirectory_v2()
            tags[ExifTags.Base.NewSubfileType] = kind
            image.save(writer, "TIFF", tiffinfo=tags, compression=compression, big_tiff=big_tiff)
            writer.newFrame()

    assert opened(tmp_path / "image").page_count == 2
    levels = [rendered(tmp_path / "image", page_index=index).pixels[32, 32, 0] for index in (0, 1)]
    assert levels == [0, 255]


@pytest.mark.parametrize("file_format", ["PNG", "WEBP"])
def test_an_animation_is_refused_and_not_cut(tmp_path: Path, file_format: str) -> None:
    pictures = [Image.new("RGB", (9, 9), color) for color in ("red", "green", "blue")]
    path = saved(
        tmp_path, pictures[0], file_format, save_all=True, append_images=pictures[1:], duration=40
    )

    with pytest.raises(UnsupportedMediaTypeError, match="animation of 3 pictures"):
        opened(path)


@pytest.mark.parametrize("file_format", ["PNG", "TIFF", "BMP", "WEBP"])
def test_an_image_over_the_cap_is_refused_before_decoding(tmp_path: Path, file_format: str) -> None:
    path = saved(tmp_path, left_half_black("RGB", (400, 100)), file_format)

    with pytest.raises(PageTooLargeError, match="400 x 100 pixels; the limit is 39999 pixels"):
        rendered(path, max_pixels=39_999)


def test_a_png_that_claims_a_huge_size_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, left_half_black(), "PNG")
    content = bytearray(path.read_bytes())
    header = b"IHDR" + (2**31 - 1).to_bytes(4, "big") * 2 + bytes(content[24:29])
    content[12:29] = header
    path.write_bytes(
        bytes(content[:29]) + zlib.crc32(header).to_bytes(4, "big") + bytes(content[33:])
    )

    with pytest.raises(PageTooLargeError):
        rendered(path)


def test_a_webp_of_the_largest_size_is_refused_as_a_page(tmp_path: Path) -> None:
    path = saved(tmp_path, left_half_black(), "WEBP", lossless=True)
    content = bytearray(path.read_bytes())
    assert content[12:16] == b"VP8L"
    # Width and height less one in 14 bits each, then whether there is transparency, and a version.
    content[21:25] = (16_382 | 16_382 << 14).to_bytes(4, "little")
    path.write_bytes(content)

    with opened(path) as source, pytest.raises(PageTooLargeError):
        source.render(0, dpi=300, max_pixels=MAX_PIXELS)


@pytest.mark.parametrize("chunk", ["zTXt", "iTXt", "iCCP"])
def test_what_a_png_says_besides_its_picture_may_be_of_any_size(tmp_path: Path, chunk: str) -> None:
    bomb = "a" * 2**21
    text = PngImagePlugin.PngInfo()
    if chunk == "zTXt":
        text.add_text("Comment", bomb, zip=True)
    elif chunk == "iTXt":
        text.add_itxt("Comment", bomb, zip=True)
    profile = {"icc_profile": bomb.encode()} if chunk == "iCCP" else {}
    path = saved(tmp_path, left_half_black(), "PNG", pnginfo=text, **profile)
    assert chunk.encode() in path.read_bytes()

    assert rendered(path).pixels[0, 0, 0] == 0


@pytest.mark.parametrize(("max_pixels", "reduction"), [(250_000, 2), (249_999, 4), (15_625, 8)])
def test_a_jpeg_over_the_cap_is_decoded_smaller(
    tmp_path: Path, max_pixels: int, reduction: int
) -> None:
    path = saved(tmp_path, left_half_black("RGB", (1000, 1000)), "JPEG", dpi=(400, 400))

    page = rendered(path, max_pixels=max_pixels)

    assert page.pixels.shape == (1000 // reduction, 1000 // reduction, 3)
    assert page.dpi == 400 / reduction


def test_a_jpeg_far_over_the_cap_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PageTooLargeError):
        rendered(saved(tmp_path, left_half_black("L", (1000, 1000)), "JPEG"), max_pixels=15_624)


@pytest.mark.parametrize("file_format", ["PNG", "TIFF", "BMP", "WEBP", "JPEG"])
def test_a_truncated_image_is_damaged(tmp_path: Path, file_format: str) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (60, 60, 3), np.uint8)
    path = saved(tmp_path, Image.fromarray(noise), file_format)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])

    with pytest.raises((DamagedPageError, UnreadableDocumentError)):
        rendered(path)


def test_a_frame_that_was_cut_off_fails_and_the_others_do_not(tmp_path: Path) -> None:
    frames = [Image.new("L", (9, 9), level) for level in (10, 20)]
    tiff = io.BytesIO()
    frames[0].save(tiff, "TIFF", save_all=True, append_images=frames[1:])
    path = tmp_path / "cut.tiff"
    path.write_bytes(tiff.getvalue()[: len(tiff.getvalue()) // 2])

    assert opened(path).page_count == 2
    assert rendered(path).pixels[0, 0, 0] == 10
    with pytest.raises(DamagedPageError):
        rendered(path, page_index=1)


def test_a_header_without_an_image_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"\x89PNG\r\n\x1a\n" + b"nothing that follows is right")

    with pytest.raises(UnreadableDocumentError):
        RasterSource(tmp_path / "image", media_type=MediaType.PNG, max_pages=1)


def test_a_jpeg_out_of_another_file_is_not_turned_by_its_exif(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    content = saved(tmp_path, left_half_black("L"), "JPEG", exif=exif).read_bytes()

    pixels = decode_jpeg(content, size=(40, 20), component_count=1)

    assert pixels.shape == (20, 40, 3)
    assert pixels[10, 5].max() < 10
    assert pixels[10, 35].min() > 245


@pytest.mark.parametrize("size", [(41, 23), (16, 8), (1, 1)])
@pytest.mark.parametrize("reduction", [1, 2, 4, 8])
def test_a_jpeg_is_reduced_with_its_sides_rounded_up(
    tmp_path: Path, size: tuple[int, int], reduction: int
) -> None:
    content = saved(tmp_path, Image.new("RGB", size, "red"), "JPEG").read_bytes()

    pixels = decode_jpeg(content, size=size, component_count=3, reduction=reduction)

    width_px, height_px = size
    assert pixels.shape == (-(-height_px // reduction), -(-width_px // reduction), 3)


def test_a_jpeg_is_shrunk_to_any_size(tmp_path: Path) -> None:
    content = saved(tmp_path, left_half_black("L"), "JPEG").read_bytes()

    pixels = decode_jpeg(content, size=(40, 20), component_count=1, resized_to=(24, 12))

    assert pixels.shape == (12, 24, 3)
    assert pixels[6, 3].max() < 10
    assert pixels[6, 20].min() > 245


@pytest.mark.parametrize(
    ("size", "component_count", "kept"), [((40, 21), 3, 1), ((40, 20), 1, 1), ((40, 20), 3, 0.7)]
)
def test_a_jpeg_that_is_not_what_its_file_says_is_damaged(
    tmp_path: Path, size: tuple[int, int], component_count: int, kept: float
) -> None:
    content = saved(tmp_path, left_half_black(), "JPEG").read_bytes()

    with pytest.raises(DamagedPageError):
        decode_jpeg(content[: int(len(content) * kept)], size=size, component_count=component_count)


def test_a_jpeg_that_stores_red_green_and_blue_is_not_decoded(tmp_path: Path) -> None:
    content = saved(tmp_path, left_half_black(), "JPEG", keep_rgb=True).read_bytes()

    with pytest.raises(DamagedPageError):
        decode_jpeg(content, size=(40, 20), component_count=3)
