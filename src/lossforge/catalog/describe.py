"""The catalogue in words: a table, one loss in full, an expression's members, citations."""

import ast
import inspect
import re
from typing import Any

from .entries import ENTRIES
from .entry import Entry
from .layout import columns, field, filled
from .lookup import BY_IDENTIFIER, identifier, look_up
from .parse import parse
from .presets import PRESETS, settings
from .references import CONSTRUCTION_REFERENCES, REFERENCES, Reference
from .setting import Setting

_WIDE = 100  # columns from which the listing is a table
COLUMNS = ("name", "formula", "parameters", "kind", "bounded", "reference")
_CONSTRUCTIONS = {"ts": "TargetSeparation", "br": "BinaryReduction"} | {
    name.lower(): name for name in CONSTRUCTION_REFERENCES
}


def rows() -> list[tuple[str, ...]]:
    """One row of `COLUMNS` for every loss in the catalogue."""
    return [
        (
            entry.name,
            entry.formula,
            arguments(entry.parameters()),
            entry.kind,
            "yes" if entry.bounded else "no",
            REFERENCES[entry.reference].short,
        )
        for entry in ENTRIES.values()
    ]


def table(width: int | None = None) -> str:
    """All losses: wrapped to `width` columns, or separated by tabs if it is None."""
    if width is None:
        return "\n".join("\t".join(row) for row in (COLUMNS, *rows()))
    listed = [(_marked(name), *rest) for name, *rest in rows()]
    lines = columns(COLUMNS, listed, width, 1, 2) if width >= _WIDE else _blocks(listed, width)
    notes = ["p: class probabilities, z: logits, y: label, K: classes, [..]: 1 if true, else 0."]
    if any(entry.unverified for entry in ENTRIES.values()):
        notes.append("*: not checked against text or code of its authors.")
    notes.append("lossforge losses NAME: presets, caveats and reference of one loss.")
    return "\n".join([*lines, "", *(filled(note, width) for note in notes)])


def detail(text: str, width: int = 100) -> str:
    """One loss in full; or a loss expression, as it is understood, with its members.

    Args:
        text: A name or alias, in any case, or an expression such as "0.5*GCE(q=0.7) + 0.5*MAE".
        width: Columns to wrap to.
    """
    entry = look_up(text)
    return _expression(text, width) if entry is None else _entry(entry, width)


def citations(text: str | None = None) -> str:
    """BibTeX of a loss, of every member of an expression, or of the whole catalogue.

    Args:
        text: A name, an alias or an expression; None for all.
    """
    return "\n\n".join(reference.bibtex for reference in references(text))


def references(text: str | None = None) -> list[Reference]:
    """The papers behind a loss, an expression's members or the catalogue, without repeats."""
    if text is None:
        keys = [entry.reference for entry in ENTRIES.values()]
    elif (entry := look_up(text)) is not None:
        keys = [entry.reference]
    else:
        parse(text)
        keys = [reference for _, reference in members(text)]
    return [REFERENCES[key] for key in dict.fromkeys(keys)]


def members(text: str) -> list[tuple[Entry | str, str]]:
    """Entries and constructions that an expression names, each with its reference's key."""
    found: dict[str, tuple[Entry | str, str]] = {}
    tree = ast.walk(ast.parse(text.strip(), mode="eval"))
    names = [node for node in tree if isinstance(node, ast.Name)]
    for node in sorted(names, key=lambda name: (name.lineno, name.col_offset)):
        key = identifier(node.id)
        if key in _CONSTRUCTIONS:
            name = _CONSTRUCTIONS[key]
            found.setdefault(name, (name, CONSTRUCTION_REFERENCES[name]))
        elif key in BY_IDENTIFIER:
            entry = BY_IDENTIFIER[key]
            found.setdefault(entry.name, (entry, entry.reference))
    return list(found.values())


def arguments(parameters: dict[str, Any]) -> str:
    """``name=value`` pairs as Python reads them; a parameter without default by its name."""
    return ", ".join(
        name if value is inspect.Parameter.empty else f"{name}={_value(value)}"
        for name, value in parameters.items()
    )


def python(entry: Entry) -> str:
    """A line of Python that builds the loss with its defaults spelt out."""
    parameters = entry.parameters()
    given = ", ".join(
        f"{name}={name}" if value is inspect.Parameter.empty else f"{name}={_value(value)}"
        for name, value in parameters.items()
    )
    if inspect.isclass(entry.make):
        return f"lossforge.{entry.make.__name__}({given})"
    return f'lossforge.make("{entry.name}"{", " if given else ""}{given})'


def traits(entry: Entry) -> str:
    """Kind and boundedness in words."""
    kind = "neither symmetric nor asymmetric" if entry.kind == "neither" else entry.kind
    verified = "; unverified" if entry.unverified else ""
    return f"{kind}, {'bounded' if entry.bounded else 'unbounded'}{verified}"


def published(entry: Entry) -> list[tuple[str, Setting]]:
    """Every published setting of a loss, with the name of its preset."""
    return [(preset, one) for preset in PRESETS for one in settings(preset, entry.name)]


def setting_text(setting: Setting) -> str:
    """Parameters and coupled regulariser of a setting."""
    decay = () if setting.l1_decay is None else (f"L1 decay {_value(setting.l1_decay)}",)
    given = arguments(setting.parameters) or "no parameters"
    return "; ".join((given, *decay))


def noise_text(setting: Setting) -> str:
    """The noise of a setting in words; "any" is any that no other setting of the preset names."""
    return (setting.noise or "any").replace(":<", " below ").replace(":>=", " from ")


def _value(value: object) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_value, value))}{',' * (len(value) == 1)})"
    if isinstance(value, float):
        short = f"{value:.0e}"
        text = short if abs(value) >= 1e4 and float(short) == value else repr(value)
        return re.sub(r"\.0$", "", re.sub(r"e([+-])0?", r"e\1", text)).replace("e+", "e")
    return repr(value).replace("'", '"') if isinstance(value, str) else str(value)


def _marked(name: str) -> str:
    return f"{name}*" if ENTRIES[name].unverified else name


def _blocks(listed: list[tuple[str, ...]], width: int) -> list[str]:
    lines = []
    for name, formula, parameters, kind, bounded, reference in listed:
        bound = "bounded" if bounded == "yes" else "unbounded"
        lines.append(f"{name:<12}{kind}, {bound}; {reference}")
        lines += [field("", text, width) for text in (formula, parameters) if text]
    return lines


def _entry(entry: Entry, width: int) -> str:
    reference = REFERENCES[entry.reference]
    found = published(entry)
    lines = [
        entry.name,
        field("formula", entry.formula, width),
        field("parameters", arguments(entry.parameters()) or "none", width),
        field("kind", traits(entry), width),
        field("python", python(entry), width),
    ]
    if found:
        preset, one = found[0]
        noise = "" if one.noise is None else f', noise="{_example(one.noise)}"'
        lines.append(field("", f'lossforge.make("{entry.name}", preset="{preset}"{noise})', width))
    if entry.aliases:
        lines.append(field("aliases", ", ".join(entry.aliases), width))
    if entry.caveat:
        lines.append(field("caveat", entry.caveat, width))
    lines.append(field("reference", reference.text, width))
    if reference.url:
        lines.append(field("", reference.url, width))
    return "\n".join([*lines, *_preset_lines(found, width)])


def _preset_lines(found: list[tuple[str, Setting]], width: int) -> list[str]:
    if not found:
        return [field("presets", "none published", width)]
    sources = list(dict.fromkeys(one.source for _, one in found))
    noises = [noise_text(one) for _, one in found]
    depends = any(one.noise for _, one in found)
    lines = ["  presets"]
    for (preset, one), noise in zip(found, noises, strict=True):
        label = f"    {preset:<10}  " + f"{noise:<{max(map(len, noises))}}  " * depends
        label += f"[{sources.index(one.source) + 1}]  "
        lines.append(filled(setting_text(one), width, label))
    lines.append("  sources")
    lines += [filled(source, width, f"    [{i}] ") for i, source in enumerate(sources, 1)]
    return lines


def _example(noise: str) -> str:
    """A noise that selects a published setting: bounds become a rate."""
    return re.sub(r":<.*", ":0.4", re.sub(r":>=.*", ":0.6", noise))


def _expression(text: str, width: int) -> str:
    lines = [text.strip(), field("parsed", str(parse(text)), width)]
    for member, key in members(text):
        short = REFERENCES[key].short
        if isinstance(member, str):
            lines.append(field("member", f"{member}, a construction ({short})", width))
        else:
            what = f"{member.name}: {member.formula}; {traits(member)} ({short})"
            lines.append(field("member", what, width))
    return "\n".join(lines)
