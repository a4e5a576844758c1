"""How a catalogue loss prints."""

from typing import Any

from ..base import format_arguments


class Named:
    """Prints as its catalogue name and the settings it was made with."""

    settings: dict[str, Any]

    def __str__(self) -> str:
        arguments = format_arguments(self.settings)
        return f"{type(self).__name__}({arguments})" if arguments else type(self).__name__
