"""Charts of bench/performance_table.py, as SVG with a ground of their own, for light and dark pages.

`bars` shows the headline configurations in milliseconds; `dots` shows the ratios of a list, sorted, one dot for each
convolution. No data is read here, and no table is written.
"""

import html
import math

import ceilings

JITCONV, CUDNN, FLOOR = "#2f9e6e", "#e08a4f", "#24292f"
BEHIND, GRID = "#c0392b", "#d8dee4"


def document(width, height, title, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'font-family="sans-serif" font-size="12" fill="{FLOOR}"><title>{html.escape(title)}</title>'
            f'<rect width="100%" height="100%" fill="#ffffff"/>{body}</svg>\n')


def text(x, y, words, **attributes):
    rest = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{rest}>{html.escape(words)}</text>'


# --- bars ---------------------------------------------------------------------------------------------------------------


def bar(x, y, ms, scale, colour):
    width = ms * scale
    return (f'<rect x="{x}" y="{y}" width="{width:.1f}" height="11" fill="{colour}"/>'
            + text(x + width + 4, y + 10, f"{ms:.2f}", font_size=11))


def panel(x, y, scale, title, comparison, dtype, best):
    """One arithmetic's headline cases from (x, y) down: jitconv's bar above cuDNN's, and a line through both at the
    floor. `best` gives the milliseconds of cuDNN's faster layout."""
    parts = [text(x, y, title, font_weight="bold")]
    y -= 8
    for one in comparison["results"]:
        name, _, with_bias = one["config"].partition("_")
        if len(name) > 1:
            continue
        y += 14 if with_bias else 22
        floor = x + scale * ceilings.floor_ms(one, one["family"], dtype, comparison["rates"])
        parts += [text(x - 6, y + 15, name + (", bias" if with_bias else ""), text_anchor="end"),
                  bar(x, y, one["ms"]["jitconv"], scale, JITCONV),
                  bar(x, y + 12, best(one), scale, CUDNN),
                  f'<line x1="{floor:.1f}" y1="{y - 2}" x2="{floor:.1f}" y2="{y + 25}" stroke="{FLOOR}" '
                  f'stroke-width="2"/>']
        y += 24
    return parts, y


def bars(panels):
    """The headline cases with and without bias. panels: (title, comparison, type of its tensors, best of one)."""
    width, labels, parts = 900, 60, []
    longest = max(best(one) for _, comparison, _, best in panels for one in comparison["results"]
                  if len(one["config"].partition("_")[0]) == 1)
    scale, bottom = (width / 2 - labels - 50) / longest, 0
    for i, (title, comparison, dtype, best) in enumerate(panels):
        of_panel, bottom = panel(labels + i * width / 2, 76, scale, title, comparison, dtype, best)
        parts += of_panel
    one = panels[0][1]
    for at, colour, words in ((labels, JITCONV, "jitconv"), (labels + 90, CUDNN, "cuDNN, the faster of NCHW and NHWC")):
        parts.append(f'<rect x="{at}" y="36" width="12" height="12" fill="{colour}"/>' + text(at + 18, 46, words))
    parts.append(f'<line x1="{labels + 362}" y1="34" x2="{labels + 362}" y2="50" stroke="{FLOOR}" stroke-width="2"/>'
                 + text(labels + 370, 46, "floor"))
    title = f"Milliseconds per launch, less is better: convolutions A to D, NCHW tensors, {one['gpu']}"
    parts += [text(labels, 22, title, font_size=14),
              text(labels, bottom + 22, f"driver {one['driver']}, cuDNN {one['cudnn']}, {one['date'][:10]}, commit "
                   f"{one['commit'][:7]}; random data, medians of {one['launches']} launches", font_size=11)]
    return document(width, bottom + 34, title, "".join(parts))


# --- dots ---------------------------------------------------------------------------------------------------------------

RATIOS = (0.5, 0.7, 1, 1.4, 2, 3, 5, 10)  # that have a line and a number


def height_of(ratio, top, height):
    """Logarithmic, from RATIOS[0] at the bottom to RATIOS[-1] at the top; what is outside lies on the border."""
    low, high = math.log(RATIOS[0]), math.log(RATIOS[-1])
    share = (min(max(math.log(ratio), low), high) - low) / (high - low)
    return top + height * (1 - share)


def plot(x, y, width, height, title, ratios):
    """The ratios of one list, sorted, from left to right."""
    ratios = sorted(ratios)
    ahead = sum(ratio >= 1 for ratio in ratios)
    parts = [text(x, y - 8, f"{title}: {ahead} of {len(ratios)} at or ahead", font_weight="bold")]
    for value in RATIOS:
        at = height_of(value, y, height)
        parts.append(f'<line x1="{x}" y1="{at:.1f}" x2="{x + width}" y2="{at:.1f}" stroke="{FLOOR if value == 1 else GRID}"/>'
                     + text(x - 6, at + 4, f"{value:g}", text_anchor="end", font_size=10))
    step = width / max(1, len(ratios))
    for i, ratio in enumerate(ratios):
        colour = JITCONV if ratio >= 1 else BEHIND
        parts.append(f'<circle cx="{x + (i + 0.5) * step:.1f}" cy="{height_of(ratio, y, height):.1f}" r="2" fill="{colour}"/>')
    return "".join(parts)


def dots(title, lists, columns=2):
    """One plot for each list. lists: (title, ratios); a ratio above 1 is jitconv ahead."""
    width, height, gap_x, gap_y = 400, 150, 56, 52
    rows = -(-len(lists) // columns)
    body = text(gap_x, 22, title, font_size=14)
    for i, (name, ratios) in enumerate(lists):
        x, y = gap_x + i % columns * (width + gap_x), 62 + i // columns * (height + gap_y)
        body += plot(x, y, width, height, name, ratios)
    return document(columns * (width + gap_x) + 20, 62 + rows * (height + gap_y), title, body)
