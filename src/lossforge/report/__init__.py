"""Figures and tables; never trains."""

from .heatmaps import transition_heatmaps

__all__ = ["transition_heatmaps"]
