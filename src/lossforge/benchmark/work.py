"""Earlier place of functions of `run`."""

from .run import Outcome as Outcome
from .run import execute as execute
