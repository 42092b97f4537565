"""surrecall snapshot"""

from __future__ import annotations

from surrecall._cli._app import Context, Json, command, progress_bar
from surrecall._cli._export import FileArgument, Force, tell
from surrecall._export import source
from surrecall._export.output import Output
from surrecall._render import counted
from surrecall._snapshot import write


@command("snapshot")
def snapshot(context: Context, file: FileArgument, force: Force = False, as_json: Json = False) -> None:
    """Write corpus, golden sets and definitions as one file, which surrecall import snapshot loads elsewhere.

    It holds every field of every document and question, vectors too, the corpus table with its analyzers, indexes and functions,
    the tables that retrievers return from, and the files of surql/corpus, so that a figure that changes there is the retriever's
    doing and not the data's. It is SurrealQL, with counts and fingerprints in its first line. The address of the database is not
    in it, nor are users, parameters, other tables, or the history.

    Example: surrecall snapshot papers.snapshot
    """
    with context.open() as database, Output(force=force) as output, progress_bar(context, "reading") as advance:
        corpus = source.of_project(context.project, context.folder)
        tables = write.tables_of(database, corpus)
        header = write.write(database, context.folder, tables, output.lines(file), advance)
    told = f"{counted(header.documents, 'document')}, {counted(header.questions, 'question')}"
    tell(context, file, as_json, header, told)
