"""How cost grows: a plot with logarithmic axes, as SVG."""

import math
from itertools import pairwise
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 70, 250, 40, 50
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#7f7f7f")


def plot(title, lines, *, across, upwards):
    """Return an SVG of *lines*, ``{name: {x: y}}``; x and y are above 0."""
    points = [point for line in lines.values() for point in line.items()]
    x_of = _axis([x for x, _ in points], LEFT, WIDTH - RIGHT)
    y_of = _axis([y for _, y in points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 22, title, size=15),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, across, anchor="middle"),
        _text(LEFT, TOP - 4, upwards, size=11),
    ]
    for value in _decades([x for x, _ in points]):
        parts.append(_line(x_of(value), TOP, x_of(value), HEIGHT - BOTTOM))
        parts.append(_text(x_of(value), HEIGHT - BOTTOM + 16, f"{value:,g}", anchor="middle"))
    for value in _decades([y for _, y in points]):
        parts.append(_line(LEFT, y_of(value), WIDTH - RIGHT, y_of(value)))
        parts.append(_text(LEFT - 6, y_of(value) + 4, f"{value:,g}", anchor="end"))
    for number, (name, line) in enumerate(lines.items()):
        parts += _curve(name, line, number, x_of, y_of)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _curve(name, line, number, x_of, y_of):
    colour = COLOURS[number % len(COLOURS)]
    places = [(x_of(x), y_of(y)) for x, y in sorted(line.items())]
    for one, two in pairwise(places):
        yield _line(*one, *two, colour=colour, width=2)
    for x, y in places:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
    y = TOP + 14 + 20 * number
    yield f'<rect x="{WIDTH - RIGHT + 14}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
    yield _text(WIDTH - RIGHT + 30, y, name)


def _axis(values, start, end):
    low, high = math.log10(min(values)), math.log10(max(values))
    room = (high - low) or 1
    return lambda value: start + (math.log10(value) - low) / room * (end - start)


def _decades(values):
    low, high = math.log10(min(values)), math.log10(max(values))
    return [10.0**power for power in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)]


def _line(x1, y1, x2, y2, *, colour="#ddd", width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def _text(x, y, text, *, anchor="start", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#333">{escape(text)}</text>'
