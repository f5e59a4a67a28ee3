"""The report of a trained model on unseen classes: numbers, pictures, one page."""

from vma.evaluation.statistics import Mean, Share
from vma.report.measure import Findings, Training, measure, recognition
from vma.report.page import summary, write_report
from vma.report.pictures import Pictures, addressing, draw_pictures, learning_curves, one_shot_samples

__all__ = [
    "Findings",
    "Mean",
    "Pictures",
    "Share",
    "Training",
    "addressing",
    "draw_pictures",
    "learning_curves",
    "measure",
    "one_shot_samples",
    "recognition",
    "summary",
    "write_report",
]
