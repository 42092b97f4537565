"""The corpus of a project: its table, and the files of surql/corpus for it, filled in from the templates beside this module."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

from surrecall import _files, _floors, _names, _quoting, _retrievers
from surrecall._errors import UsageError

_TEMPLATES = Path(__file__).parent / "templates" / "corpus"
_CHUNK_TEMPLATES = Path(__file__).parent / "templates" / "chunks"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# what fn::search_vec gives as a score, so that more is better; the other distances of the engine are negated
_DISTANCES = ("COSINE", "EUCLIDEAN", "MANHATTAN", "CHEBYSHEV", "HAMMING", "JACCARD", "PEARSON")
# of these the engine has the similarity, and the distance is what it lacks of 1
_SIMILARITIES = ("COSINE", "JACCARD", "PEARSON")
_MINKOWSKI = re.compile(r"MINKOWSKI \d+(\.\d+)?")
# what becomes of a label whose document its owner deletes
REFERENCES = {"reject": "REFERENCE ON DELETE REJECT", "unset": "REFERENCE ON DELETE UNSET", "none": None}
# files that only a corpus with this kind of search has
_OF_TEXT = ("TABLE_words", "search_bm25", "retrieve_bm25")
_OF_VECTOR = ("TABLE_embedding", "search_vec", "retrieve_vec")
_OF_BOTH = ("search_hybrid", "retrieve_hybrid", "search_hybrid_floor", "retrieve_hybrid_floor")
_CHUNKS_OF_TEXT = ("CHUNK_words", "search_CHUNK_bm25", "search_CHUNK_hybrid")
_CHUNKS_OF_VECTOR = ("CHUNK_embedding", "search_CHUNK_vec", "search_CHUNK_hybrid")
# short enough for what is named after it
_CHUNK_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_OF_OWN = ("TABLE", "TABLE_words", "TABLE_embedding", "TABLE_labels")


@dataclass(frozen=True)
class TextIndex:
    """A full-text index: the field it searches, its name and its analyzer."""

    field: str
    name: str
    analyzer: str


@dataclass(frozen=True)
class Corpus:
    """The table to evaluate over.

    `text` is the field or fields that BM25 searches, `vector` the field with `dimension` numbers compared by `distance`, None
    for a corpus without; `pool` how many candidates the vector search and each half of the fusion look at, and so the largest k.

    An `adopted` corpus is its owner's: nothing is defined on it, and its indexes have the names they have (`text_indexes`, one
    for each field of `text`, empty where it has none; `vector_index`). Its vectors may be rows of `vector_table`, which lead to
    the document by their field `link`, or to which the document leads by its field `linked_by`.

    Documents that are pieces of a longer text say by `parent` of which, and by `position`, a whole number, which piece they are.

    `title` is the field shown as a document's heading, None for none. `reference` says what becomes of labels when a document is
    deleted: 'reject', 'unset', 'none'. `names` are tables and functions of surrecall's that go by another name.
    """

    table: str
    text: str | Sequence[str]
    vector: str | None = None
    dimension: int = 0
    distance: str = "COSINE"
    analyzer: str | None = None
    pool: int = 100
    adopted: bool = False
    text_indexes: Sequence[str] | None = None
    vector_index: str | None = None
    vector_table: str | None = None
    link: str | None = None
    linked_by: str | None = None
    title: str | None = "title"
    parent: str | None = None
    position: str | None = None
    reference: str = "reject"
    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fields = [self.text] if isinstance(self.text, str) else list(self.text)
        paths = tuple(_path("field", name) for name in fields)
        object.__setattr__(self, "text", paths[0] if len(paths) == 1 else paths)
        # what has no title says so by an empty name, since TOML knows no other
        object.__setattr__(self, "title", self.title or None)
        for name in ("vector", "link", "linked_by", "title", "parent", "position"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _path(name, getattr(self, name)))
        object.__setattr__(self, "distance", self.distance.upper())
        if self.text_indexes is not None:
            object.__setattr__(self, "text_indexes", tuple(self.text_indexes))
        self._check()

    def _check(self) -> None:
        if not self.table or len(self.table) > 255:
            raise UsageError(f"--table {self.table!r} is no name", "give the table of the documents")
        ours = [self.names.get(name, name) for name in _names.TABLES]
        if self.table in ours:
            raise UsageError(
                f"--table {self.table} is a table of surrecall's own",
                f"ours are {', '.join(ours)}; for a table of yours of that name: --rename {self.table}=surrecall_{self.table}",
            )
        if not self.adopted and not _NAME.fullmatch(self.analyzer_name):
            raise UsageError(f"--analyzer {self.analyzer_name!r} is no plain name", "letters, digits and _, not a digit first")
        if not self.texts:
            raise UsageError("a corpus without a text field", "give --field")
        if len({*self.texts, self.vector}) < len(self.texts) + 1:
            raise UsageError("a field is given twice", "give --field and --vector other names")
        if (not self.adopted and self.texts == ("title",)) or self.vector == "title":
            raise UsageError("title, text and vector are three fields", "give --field and --vector other names")
        if (self.parent is None) != (self.position is None):
            raise UsageError("--parent and --position go together", "which text a piece is of, and which piece of it")
        if self.reference not in REFERENCES:
            raise UsageError(f"--reference {self.reference!r} is none that is known", f"one of {', '.join(REFERENCES)}")
        if self.distance not in _DISTANCES and not _MINKOWSKI.fullmatch(self.distance):
            raise UsageError(f"--distance {self.distance!r} is none that is known", f"one of {', '.join(_DISTANCES)}")
        ranges = [("pool", self.pool, 10_000)]
        ranges += [("dimension", self.dimension, 65_536)] if self.vector is not None else []
        for option, number, most in ranges:
            if not 1 <= number <= most:
                raise UsageError(f"--{option} {number} is out of range", f"1 to {most}")

    @property
    def texts(self) -> tuple[str, ...]:
        """The text fields, as SurrealQL writes them."""
        return (self.text,) if isinstance(self.text, str) else tuple(self.text)

    @property
    def body(self) -> str:
        """The one text field that a document's text is stored in: the first that is not its title."""
        return next((name for name in self.texts if name != self.title), self.texts[0])

    @property
    def pieces(self) -> tuple[str, str] | None:
        """The fields that say of which text a document is a piece, and which piece; None where documents stand alone."""
        return None if self.parent is None or self.position is None else (self.parent, self.position)

    @property
    def analyzer_name(self) -> str:
        """The analyzer of the full-text index."""
        return self.analyzer or f"{_plain(self.table)}_text"

    @property
    def words(self) -> list[TextIndex]:
        """The full-text indexes, in the order of the fields."""
        if self.text_indexes is not None:
            named = zip(self.texts, self.text_indexes, strict=False)
            return [TextIndex(name, index, self.analyzer_name) for name, index in named if index]
        first = f"{_plain(self.table)}_words"
        names = [first] + [f"{first}_{_plain(name)}" for name in self.texts[1:]]
        return [TextIndex(name, index, self.analyzer_name) for name, index in zip(self.texts, names, strict=True)]

    @property
    def nearest(self) -> str | None:
        """The name of the vector index; None without one."""
        return None if self.vector is None else self.vector_index or f"{_plain(self.table)}_embedding"

    @property
    def indexes(self) -> tuple[str, ...]:
        """The names of the full-text indexes and of the vector index."""
        return (*(index.name for index in self.words), *([self.nearest] if self.nearest else []))

    @property
    def has_words(self) -> bool:
        """Whether BM25 can search it."""
        return bool(self.words)

    def render(self, extra: Sequence[_retrievers.Retriever] = ()) -> list[_files.SourceFile]:
        """The files of surql/corpus for this table, by name; retrieve.surql and floors.surql are made from the .toml files.

        `extra` are retrievers beside the ones of its indexes.
        """
        entries = [_retrievers.entry(retriever) for retriever in extra]
        files = [
            _files.SourceFile(
                f"{name.replace('TABLE', _plain(self.table))}{suffix}",
                self._fill(f"{template}{suffix}", _TEMPLATES, extra=entries, **values),
            )
            for template, suffix in _templates()
            if self._takes(template)
            for name, values in self._instances(template)
        ]
        files = [_files.SourceFile(file.name, _names.rename(file.text, self.names)) for file in files]
        # what the user wrote is no place for other names
        name = Path(_files.REGISTRY_FILE).name
        registry = "\n\n".join([next(file.text for file in files if file.name == name).rstrip(), *entries]) + "\n"
        files = sorted((_files.SourceFile(name, registry) if file.name == name else file for file in files), key=_by_name)
        dispatcher = _retrievers.compile_dispatcher(_retrievers.parse(registry), self.names)
        # it has only comments yet
        rows = _floors.compile_rows([], self.names)
        made = {_files.DISPATCHER_FILE: dispatcher, _files.FLOOR_ROWS_FILE: rows}
        return [*files, *(_files.SourceFile(Path(name).name, text) for name, text in made.items())]

    def require_chunk_table(self, name: str) -> None:
        """Raise UsageError unless a table of chunks can have this name."""
        if not _CHUNK_TABLE.fullmatch(name) or not _quoting.is_plain(name):
            raise UsageError(f"{name!r} can't be the name of a chunk table", "letters, digits and _, at most 40: chunk_small")
        taken = {self.table, self.vector_table, *_names.TABLES, *self.names.values()}
        if name in taken:
            raise UsageError(
                f"{name} is a table already, and none of chunks", "give the chunks a table of their own: chunk_small"
            )

    def chunk_indexes(self, name: str) -> tuple[str, ...]:
        """The names of the indexes over a table of chunks that are built when it is filled."""
        words = [self._words_of(name, field) for field in self._chunk_fields] if self.has_words else []
        return (*words, *([f"{name}_embedding"] if self.vector else []))

    def chunk_files(self, name: str) -> list[_files.SourceFile]:
        """The files of surql/corpus for a table of chunks of this corpus."""
        self.require_chunk_table(name)
        words, fields = self.has_words, self._chunk_fields
        made = []
        for path in sorted(_CHUNK_TEMPLATES.glob("*.surql")):
            if (path.stem in _CHUNKS_OF_TEXT and not words) or (path.stem in _CHUNKS_OF_VECTOR and self.vector is None):
                continue
            for field_name in fields if path.stem == "CHUNK_words" else [""]:
                index = self._words_of(name, field_name)
                file = f"{index if field_name else path.stem.replace('CHUNK', name)}.surql"
                text = self._fill(
                    path.name,
                    _CHUNK_TEMPLATES,
                    name=name,
                    chunk=_quoting.identifier(name),
                    fields=fields,
                    field=field_name,
                    index=index,
                    words=self.chunk_indexes(name)[: len(fields)],
                )
                made.append(_files.SourceFile(file, _names.rename(text, self.names)))
        return made

    def chunk_retrievers(self, name: str) -> list[_retrievers.Retriever]:
        """The retrievers over a table of chunks: each search by chunks, and by documents, of which the best chunk counts."""
        self.require_chunk_table(name)
        words, vector = f"fn::search_{name}_bm25($question.text, {{k}})", f"fn::search_{name}_vec($question.embedding, {{k}})"
        both = f"fn::search_{name}_hybrid($question.text, $question.embedding, {{k}})"
        searches = [
            *([("bm25", words, {"lexical": words})] if self.has_words else []),
            *([("vector", vector, {"vector": vector})] if self.vector else []),
            *([("hybrid", both, {"lexical": words, "vector": vector, "fused": both})] if self.has_words and self.vector else []),
        ]
        best = self.names.get("fn::best_documents", "fn::best_documents")
        every = f"math::max([$k, {self.pool}])"
        forms = [("", "{call}", "$k", name), ("_doc", f"{best}({{call}}, $k)", every, self.table)]
        return [
            _retrievers.Retriever(
                f"{name}_{search}{ending}",
                form.format(call=call.format(k=k)),
                returns,
                stages=tuple(_retrievers.Stage(stage, form.format(call=one.format(k=k))) for stage, one in stages.items()),
            )
            for search, call, stages in searches
            for ending, form, k, returns in forms
        ]

    @property
    def _chunk_fields(self) -> list[str]:
        """The fields of a chunk that BM25 searches."""
        return ["text", *(["title"] if self.title in self.texts and self.title != self.body else [])]

    def _words_of(self, name: str, field_name: str) -> str:
        return f"{name}_words" + (f"_{field_name}" if field_name != "text" else "")

    def _takes(self, template: str) -> bool:
        if self.adopted and template in _OF_OWN:
            return False
        words, vectors = self.has_words, self.vector is not None
        groups = ((_OF_TEXT, words), (_OF_VECTOR, vectors), (_OF_BOTH, words and vectors))
        return all(is_there for group, is_there in groups if template in group)

    def _instances(self, template: str) -> list[tuple[str, dict[str, object]]]:
        """The files that a template makes: one, or one a full-text index."""
        if template != "TABLE_words":
            return [(template, {})]
        return [(index.name, {"index": index}) for index in self.words]

    def _content(self, row: str, table: str) -> str:
        """What of a row retrieval can see, as a list, a vector as its sum: as text it would cost more than all else."""
        total = f"IF type::is_array({row}.{self.vector}) {{ math::sum({row}.{self.vector}) }}" if self.vector else None
        if table == self.vector_table:
            return f"[{row}.id, {f'{row}.{self.link}, ' if self.link else ''}{total}]"
        parts = [
            f"{row}.{name}" for name in dict.fromkeys(["id", *self._readable, *([self.linked_by] if self.linked_by else [])])
        ]
        return f"[{', '.join(parts + ([total] if total and not self.vector_table else []))}]"

    @property
    def _readable(self) -> list[str]:
        """The fields that a person reads."""
        return list(dict.fromkeys([*([self.title] if self.title else []), *self.texts]))

    def _reads(self, row: str) -> str:
        """What a person reads of a row, as a list."""
        return f"[{', '.join(f'{row}.{name}' for name in self._readable)}]"

    @property
    def _exact(self) -> str | None:
        """The distance of a vector from $qvec, worked out without an index."""
        kind, _, order = self.distance.partition(" ")
        name = f"vector::{'similarity' if kind in _SIMILARITIES else 'distance'}::{kind.lower()}"
        value = f"{name}({self.vector}, $qvec{', ' + order if order else ''})"
        return None if self.vector is None else f"1 - {value}" if kind in _SIMILARITIES else value

    def _fill_with(self, own: str, adopted: str) -> str:
        # the help centre's own shape; another article has no use for its seeds
        seeded = (self.table, self.text, self.dimension) == ("article", "content", 4)
        return "surrecall seed" if seeded else adopted if self.adopted else own

    def _fill(self, template: str, folder: Path, **values: object) -> str:
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folder),
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,  # SurrealQL, quoted by the filters below
        )
        environment.filters |= {"id": _quoting.identifier, "q": _quoting.inside, "json": _json}
        return environment.get_template(template).render(
            corpus=self,
            table=_quoting.identifier(self.table),
            label=_quoting.inside(self.table),
            text=_quoting.inside(", ".join(self.texts)),
            # NONE or NULL of a field that is not set is no text
            texts=self.texts[0] if len(self.texts) == 1 else f"[{', '.join(self.texts)}]",
            content=self._content,
            readable=self._readable,
            reads=self._reads,
            # the tables whose changes change what retrieval can see
            watched=dict.fromkeys([self.table, self.vector_table or self.table]),
            vector=self.vector,
            vectors=_quoting.identifier(self.vector_table or self.table),
            dimension=self.dimension,
            distance=self.distance,
            exact=self._exact,
            score="1 - distance" if self.distance in ("COSINE", "PEARSON") else "0 - distance",
            reference=REFERENCES[self.reference],
            fill=self._fill_with("surrecall import collection, or CREATE your own", "CREATE documents, it is yours"),
            fill_questions=self._fill_with(
                "surrecall import collection, or CREATE your own", "surrecall import questions, or CREATE your own"
            ),
            names=_names.told(self.names),
            mend="define it again" if self.adopted else "define it (surrecall apply)",
            pool=self.pool,
            # fewer candidates than K would come back from a smaller ef
            ef=self.pool * 3 // 2,
            **values,
        )


def _templates() -> list[tuple[str, str]]:
    return [(path.stem, path.suffix) for path in sorted(_TEMPLATES.iterdir()) if not path.name.startswith("_")]


def _json(text: str) -> str:
    """A string of TOML: one of JSON's, its letters as they are."""
    return json.dumps(text, ensure_ascii=False)


def _by_name(file: _files.SourceFile) -> str:
    return file.name


def _plain(name: str) -> str:
    """A name for files, indexes and analyzers that are made from it."""
    made = re.sub(r"[^A-Za-z0-9_]+", "_", name)
    return made if re.match(r"[A-Za-z_]", made) else f"_{made}"


def _path(option: str, name: str) -> str:
    try:
        return _quoting.path(name)
    except ValueError as error:
        raise UsageError(f"--{option} {name!r} is no field", "a name, or a path: meta.body, `full text`") from error
