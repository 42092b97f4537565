"""A report: what an evaluation found, as one page of HTML that needs nothing else."""

from surrecall._report.facts import Asked, Facts, gather
from surrecall._report.page import LARGEST_PAGE, changes_chart, page

__all__ = ["LARGEST_PAGE", "Asked", "Facts", "changes_chart", "gather", "page"]
