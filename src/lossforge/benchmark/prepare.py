"""Earlier place of functions of `run`."""

from .run import prepare_data as prepare_data
from .run import prepare_model as prepare_model
from .run import samples as samples
