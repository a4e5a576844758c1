"""Plain text in columns."""

import textwrap


def columns(
    header: tuple[str, ...], rows: list[tuple[str, ...]], width: int, loose: int, tight: int
) -> list[str]:
    """Lines of a table in which the columns `loose` and `tight` share what the others leave."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    free = width - 2 * (len(header) - 1) - sum(widths) + widths[loose] + widths[tight]
    widths[tight] = min(widths[tight], max(free - widths[loose], free * 2 // 5))
    widths[loose] = min(widths[loose], free - widths[tight])
    rule = "  ".join("-" * one for one in widths)
    return [_row(header, widths), rule, *(_row(row, widths) for row in rows)]


def filled(text: str, width: int, first: str = "") -> str:
    """A paragraph that starts with `first` and is indented by its length."""
    return textwrap.fill(
        text,
        max(width, 60),
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def field(label: str, text: str, width: int) -> str:
    """A labelled paragraph."""
    return filled(text, width, f"  {label:<12}")


def _row(cells: tuple[str, ...], widths: list[int]) -> str:
    columns = [
        textwrap.wrap(cell, width, break_long_words=True) or [""]
        for cell, width in zip(cells, widths, strict=True)
    ]
    lines = []
    for i in range(max(map(len, columns))):
        parts = [
            (column[i] if i < len(column) else "").ljust(width)
            for column, width in zip(columns, widths, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)
