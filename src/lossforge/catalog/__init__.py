"""Named losses: a reference and parameters, no behaviour of their own.

Every registered class is a name of this package; nothing has to be added here.
"""

import inspect
from typing import TYPE_CHECKING

from . import balanced, classwise, pointwise, sums, wrapped  # noqa: F401 - they register
from .code import Code as Code
from .code import factory as factory
from .code import receive as receive
from .code import restore as restore
from .entry import ENTRIES as ENTRIES
from .entry import Entry as Entry
from .entry import find as find
from .entry import names as names
from .entry import register as register
from .make import make as make
from .make import spell as spell
from .parse import Reading as Reading
from .parse import admit as admit
from .parse import outside as outside
from .parse import parse as parse
from .parse import read as read
from .published import PRESETS as PRESETS
from .published import Setting as Setting
from .published import select as select
from .published import settings as settings
from .references import REFERENCES as REFERENCES
from .wrapped import SRSchedule as SRSchedule

CLASSES = tuple(entry.make for entry in ENTRIES.values() if inspect.isclass(entry.make))

if TYPE_CHECKING:
    from .balanced import *  # noqa: F403
    from .classwise import *  # noqa: F403
    from .pointwise import *  # noqa: F403
else:
    globals().update({loss.__name__: loss for loss in CLASSES})
    __all__ = [
        *sorted(loss.__name__ for loss in CLASSES),
        "ENTRIES",
        "PRESETS",
        "SRSchedule",
        "admit",
        "factory",
        "find",
        "make",
        "names",
        "parse",
        "register",
        "select",
        "settings",
    ]
