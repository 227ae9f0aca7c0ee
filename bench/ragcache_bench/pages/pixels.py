"""Numbers as pictures of one pixel each, in one colour that lets any background through where there is nothing."""

import base64
import struct
import zlib
from dataclasses import dataclass
from html import escape

import numpy as np
import torch
from torch import Tensor

#: Red, green, blue of what is warm; readable on white and on black.
WARM = (224, 92, 10)
COOL = (30, 120, 200)


def shares(values: Tensor, scale: Tensor, floor: Tensor | None = None) -> Tensor:
    """Values between 0 and 1: 1 at the scale's 99th percentile and above, row by row.

    Parameters
    ----------
    values : Tensor
        (rows, columns), at least 0.
    scale : Tensor
        (rows or 1, any): what each row is measured by, so that two pictures may share it.
    floor : Tensor, optional
        (rows,): the least that counts as 1, so that rounding errors are not blown up to a picture.
    """
    top = scale.float().quantile(0.99, dim=-1)  # (rows,)
    top = top.where(top > 0, scale.amax(-1))
    least = torch.full_like(top, 1e-12) if floor is None else floor.clamp_min(1e-12)
    return (values / top.maximum(least)[:, None]).clamp(0, 1)


def png(values: Tensor, colour: tuple[int, int, int] = WARM) -> str:
    """A picture of (rows, columns) in [0, 1] as a data URI: the colour, as opaque as the value is large."""
    rows, columns = values.shape
    pixels = np.empty((rows, columns, 4), dtype=np.uint8)  # RGBA
    pixels[..., :3] = colour
    pixels[..., 3] = (values.float() * 255).round().numpy()
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)  # filter 0 before each
    header = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 9)
    parts = b"".join(_part(kind, body) for kind, body in ((b"IHDR", header), (b"IDAT", data), (b"IEND", b"")))
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


def _part(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


@dataclass(frozen=True, eq=False)
class Strip:
    """One band of a picture: (rows, columns) in [0, 1], the rows' names, and what it shows."""

    title: str
    names: tuple[str, ...]
    values: Tensor
    colour: tuple[int, int, int] = WARM


_W, _LEFT, _ROW, _MOST = 1120, 96, 12, 176


def strips(bands: list[Strip], spans: tuple[range, ...], named: tuple[str, ...]) -> str:
    """Bands under each other as one SVG, with the same columns and a line at each span's border.

    Parameters
    ----------
    bands : list of Strip
        Top to bottom.
    spans : tuple of range
        Columns of each chunk.
    named : tuple of str
        What stands above each chunk.
    """
    columns = bands[0].values.shape[1]
    wide = (_W - _LEFT) / columns
    parts, top = [], 16.0
    for span, name in zip(spans, named, strict=True):
        middle = _LEFT + wide * (span.start + span.stop) / 2
        parts.append(f'<text class="tick" x="{middle:.1f}" y="10" text-anchor="middle">{escape(name)}</text>')
    for band in bands:
        tall = min(_ROW * len(band.names), _MOST)
        parts += _band(band, top + 14, tall)
        top += tall + 20
    borders = "".join(f"M{_LEFT + wide * edge:.1f} 14V{top:.1f}" for span in spans for edge in (span.start, span.stop))
    parts.append(f'<path class="axis" fill="none" d="{borders}"/>')
    size = f'viewBox="0 0 {_W} {top + 4:.0f}"'
    return f'<svg {size} role="img" aria-label="{escape("; ".join(b.title for b in bands))}">{"".join(parts)}</svg>'


def _band(band: Strip, top: float, tall: float) -> list[str]:
    step = tall / len(band.names)
    shown = range(0, len(band.names), max(1, round(_ROW / step)))  # as many names as there is room for
    return [
        f'<text class="name" x="{_LEFT}" y="{top - 3:.1f}">{escape(band.title)}</text>',
        *(
            f'<text class="tick" x="{_LEFT - 6}" y="{top + step * (i + 0.5) + 3.5:.1f}" text-anchor="end">'
            f"{escape(band.names[i])}</text>"
            for i in shown
        ),
        f'<image x="{_LEFT}" y="{top:.1f}" width="{_W - _LEFT}" height="{tall:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering: pixelated" href="{png(band.values, band.colour)}"/>',
    ]
