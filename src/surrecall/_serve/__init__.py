"""The live page: the report as it changes, comparisons, questions, retrievers side by side, labelling by click."""

from surrecall._serve.app import Site, make_app
from surrecall._serve.server import Server

__all__ = ["Server", "Site", "make_app"]
