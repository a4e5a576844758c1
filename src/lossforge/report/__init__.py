"""Tables, statistics and figures of finished runs; nothing is trained."""

from .figures import transition_heatmaps
from .results import Results
from .write import Report, make_report, write_report

__all__ = ["Report", "Results", "make_report", "transition_heatmaps", "write_report"]
