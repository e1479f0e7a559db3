# SPDX-License-Identifier: Apache-2.0
"""Charts of bars in SVG: ratios on a logarithmic scale, to the right of the line at 1 where they are above it; and speeds in groups."""
import html
import math

COLOURS = ("#2b6cb0", "#a0aec0")
ROW, LEFT, WIDTH, TOP = 15, 170, 480, 56


def bars(title, rows, legend):
    """rows: (label, ratio, whether it is of the first kind of the legend). Returns the text of the file."""
    reach = max([2.0] + [max(ratio, 1 / ratio) for _, ratio, _ in rows])
    steps = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64]
    low, high = max(1 / reach, 0.2) * 0.95, reach * 1.3

    def x(ratio):
        return LEFT + WIDTH * (math.log(min(max(ratio, low), high)) - math.log(low)) / (math.log(high) - math.log(low))

    height = TOP + ROW * len(rows) + 12
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 60} {height}" font-family="sans-serif" '
           'font-size="11">',
           f'<rect width="100%" height="100%" fill="#fff"/><text x="10" y="18" font-size="13">{html.escape(title)}</text>']
    for k, name in enumerate(legend):
        out.append(f'<rect x="{10 + 210 * k}" y="27" width="10" height="10" fill="{COLOURS[k]}"/>'
                   f'<text x="{26 + 210 * k}" y="36">{html.escape(name)}</text>')
    for step in steps:
        if low < step < high:
            stroke = "#1a202c" if step == 1 else "#e2e8f0"
            out.append(f'<line x1="{x(step):.1f}" x2="{x(step):.1f}" y1="{TOP - 4}" y2="{height - 10}" stroke="{stroke}"/>'
                       f'<text x="{x(step):.1f}" y="{TOP - 7}" text-anchor="middle" fill="#4a5568">{step:g}</text>')
    for k, (label, ratio, is_first) in enumerate(rows):
        y, start, end = TOP + ROW * k, min(x(1), x(ratio)), max(x(1), x(ratio))
        out.append(f'<text x="{LEFT - 8}" y="{y + 10}" text-anchor="end">{html.escape(label)}</text>'
                   f'<rect x="{start:.1f}" y="{y + 1}" width="{max(end - start, 1):.1f}" height="{ROW - 4}" '
                   f'fill="{COLOURS[0 if is_first else 1]}"/>'
                   f'<text x="{end + 4:.1f}" y="{y + 10}" fill="#4a5568">{ratio:.2f}</text>')
    return "\n".join(out + ["</svg>", ""])


_PALETTE = ("#2b6cb0", "#718096", "#9f7aea", "#b794f4", "#dd6b20", "#38a169")


def groups(title, note, rows):
    """Bars from 0. rows: (label, [(name, value)]); a name has one colour in all of them. Returns the text of the file."""
    names = list(dict.fromkeys(name for _, values in rows for name, _ in values))
    most = max(value for _, values in rows for _, value in values)
    bar, gap, left, width = 12, 10, 190, 420
    height = TOP + 8 + sum(bar * len(values) + gap for _, values in rows) + 16
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 170} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="100%" height="100%" fill="#fff"/><text x="10" y="18" font-size="13">{html.escape(title)}</text>',
           f'<text x="10" y="34" fill="#4a5568">{html.escape(note)}</text>']
    y = TOP - 4
    for label, values in rows:
        out.append(f'<text x="{left - 8}" y="{y + bar * len(values) / 2 + 4:.0f}" text-anchor="end">{html.escape(label)}</text>')
        for name, value in values:
            out.append(f'<rect x="{left}" y="{y + 1}" width="{max(width * value / most, 1):.1f}" height="{bar - 2}" '
                       f'fill="{_PALETTE[names.index(name) % len(_PALETTE)]}"/>'
                       f'<text x="{left + width * value / most + 5:.1f}" y="{y + 10}" fill="#4a5568" font-size="10">{value:.2f} {html.escape(name)}</text>')
            y += bar
        y += gap
    return "\n".join(out + ["</svg>", ""])
