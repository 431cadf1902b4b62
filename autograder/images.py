"""Pictures that a student's code drew: decoded and encoded anew, so that a page shows pixels and nothing else."""

import base64
import io

from PIL import Image

PIXELS = 4_000_000


def shown(png: bytes) -> str | None:
    """A PNG file as a notebook holds it (base64), re-encoded; None for what is no picture, or too large a one."""
    try:
        with Image.open(io.BytesIO(png), formats=["PNG"]) as picture:
            if picture.width * picture.height > PIXELS:
                return None
            pixels = picture.convert("RGBA")
    except Exception:  # a decoder's complaints are of many kinds
        return None
    pixels.info = {}
    file = io.BytesIO()
    pixels.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()
