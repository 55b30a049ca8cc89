"""A file that cannot be decoded to its end is refused when it is read (case R1)."""

import base64
import random
from io import BytesIO

import pytest
from PIL import Image

NOISE = Image.effect_noise((64, 48), 80).convert("RGB")
TURNED = [NOISE.rotate(9), NOISE.rotate(20)]
KINDS = {
    "png": ("image/png", "PNG", {}),
    "apng": ("image/png", "PNG", {"save_all": True, "append_images": TURNED}),
    "jpeg": ("image/jpeg", "JPEG", {}),
    "progressive": ("image/jpeg", "JPEG", {"progressive": True}),
    "gif": ("image/gif", "GIF", {}),
    "animation": ("image/gif", "GIF", {"save_all": True, "append_images": TURNED}),
    "webp": ("image/webp", "WEBP", {}),
    "lossless": ("image/webp", "WEBP", {"lossless": True}),
    "moving": ("image/webp", "WEBP", {"save_all": True, "append_images": TURNED}),
}


def made(kind, image=NOISE):
    _, name, more = KINDS[kind]
    data = BytesIO()
    image.save(data, name, **more)
    return data.getvalue()


@pytest.fixture
def read(call, context):
    def run(data):
        (context.cwd / "picture").write_bytes(data)
        return call("read", path="picture")

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_image_is_shown_as_a_block(read, kind):
    data = made(kind)

    text, image = read(data).content

    assert f"{KINDS[kind][0]}, 64 x 48 pixels" in text["text"]
    assert image["source"]["media_type"] == KINDS[kind][0]
    assert base64.b64decode(image["source"]["data"]) == data


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_that_is_cut_anywhere_is_refused(read, kind):
    data = made(kind)
    cuts = [20, len(data) // 2, len(data) - 1, *random.Random(kind).sample(range(20, len(data)), 9)]

    for cut in cuts:
        output = read(data[:cut])
        assert output.is_error, cut
        assert "picture" in output.content


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif"])
def test_an_image_whose_middle_is_lost_is_refused(read, kind):
    data = made(kind)
    middle = len(data) // 2

    assert read(data[:middle] + b"\0" * (len(data) - middle)).is_error
    if kind == "png":
        assert read(data[:middle] + b"\1" + data[middle + 1 :]).is_error


def test_a_checksum_that_disagrees_is_damage(read):
    data = bytearray(made("png"))
    data[data.index(b"IEND") - 8] ^= 1  # of the last piece of the picture

    assert "damaged" in read(bytes(data)).content


def test_the_end_of_a_preview_is_not_the_end_of_the_photo(read):
    photo = BytesIO()
    NOISE.save(photo, "JPEG", comment=b"a preview: \xff\xd8 \xff\xd9")

    assert not read(photo.getvalue()).is_error
    assert "its end is missing" in read(photo.getvalue()[:-2]).content


@pytest.mark.parametrize(("kind", "trailer"), [("jpeg", b"\0 a trailer"), ("gif", b"\0\0")])
def test_what_comes_after_the_end_does_no_harm(read, kind, trailer):
    assert not read(made(kind) + trailer).is_error


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (made("png", Image.new("1", (9000, 2))), "9000 x 2 pixels"),
        (made("png") + b"\0" * 4_000_000, "too large"),
        (made("png")[:18], "no image that can be read"),
        (b"\xff\xd8\xff\xda\x00\x04abcd", "no image that can be read"),
        (b"GIF89a\3\0\2\0" + b"\0" * 20 + b";", "damaged"),
        (b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + b"\2\0\0\1\0\0" + b"\0" * 20, "damaged"),
    ],
)
def test_an_image_that_the_api_would_refuse_is_refused_here(read, data, message):
    output = read(data)

    assert output.is_error
    assert message in output.content


def test_an_animation_of_any_number_of_frames_is_not_decoded_for_ever(read):
    frame = Image.new("1", (8000, 8000))
    data = BytesIO()
    frame.save(data, "GIF", save_all=True, append_images=[Image.new("1", (8000, 8000), 1), frame])

    assert not read(data.getvalue()).is_error
