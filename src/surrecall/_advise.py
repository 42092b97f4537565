"""Finding what in a schema makes retrieval slow or wrong, by measuring it. What counts as a finding is the database's to say."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from surrealdb import BoundExcluded, Range, RecordID, Table

from surrecall import _inventory, _probes, _quoting, _render
from surrecall._corpus import Corpus
from surrecall._database import Database
from surrecall._errors import SurrecallError
from surrecall._shards import Progress

_PROBE = """
DEFINE FUNCTION OVERWRITE {name}($text: any) {{
  {body}
}} COMMENT 'surrecall: measures a search, for a moment'
"""
_SAMPLE = "RETURN fn::advise_sample($set, $number)"
_WORDS = "RETURN fn::frequent_words($texts, $limit).word"
_EACH = "RETURN $words.map(|$word| PROBE($word))"
# the marks that analyzers make words of
_MARKS = (".", ",", ";", ":", "(", ")", "-", "/", "%")
_TIMED = """
  LET $from = time::now();
  LET $ids = {search}($text.text, 10).id;
  LET $took = <float> duration::nanos(time::now() - $from) / 1000000;
  RETURN {{ took: $took, ndcg: fn::ndcg_at($ids, fn::labels_of($text.id), 10) }};
"""
_EFFECT = """
RETURN {
  before: fn::nearest_rank(array::sort($before.took), 50), after: fn::nearest_rank(array::sort($after.took), 50),
  ndcg_before: math::mean($before.ndcg), ndcg_after: math::mean($after.ndcg), questions: $before.len()
};
"""
# a range inside a closure is read up to LIMIT, and no further
_VECTORS = """
LET $page = [$rows].map(|$from| (
  SELECT id, IF !type::is_array({vector}) {{ 1 }} ELSE IF fn::usable_vector({vector}, {dimension}) {{ 0 }} ELSE {{ 2 }} AS fault FROM $from LIMIT $limit
))[0];
LET $missing = (SELECT VALUE id FROM $page WHERE fault = 1);
LET $zero = (SELECT VALUE id FROM $page WHERE fault = 2);
RETURN {{ read: $page.len(), last: array::last($page.id), missing: $missing, zero: $zero }};
"""
_READ = """
RETURN [$ids].map(|$some| {{
  LET $from = time::now();
  LET $read = (SELECT VALUE string::len(<string> ({text} ?? '')) FROM $some);
  RETURN <float> duration::nanos(time::now() - $from) / 1000000 + 0 * $read.len();
}})[0];
"""
_PAGE = 200
# questions that are searched with, documents that are read, words that are counted
_ASKED, _READ_ROWS, _COUNTED, _TRIED = 20, 200, 150, 10
_ROUNDS = 9
_CHUNK = 10


@dataclass(frozen=True)
class Advice:
    """One finding: what was measured, in words and in figures, what mends it, and what that is expected to change.

    `statements` are SurrealQL to run as it stands, `commands` what is to be done beside it.
    """

    kind: str
    subject: str
    measured: str
    expected: str
    statements: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Advised:
    """The findings, worst first, what was looked at, and what could not be."""

    findings: list[Advice]
    looked: list[str]
    warnings: list[str]


def advise(
    database: Database,
    corpus: Corpus,
    k: int,
    question_set: str = "default",
    progress: Progress = lambda _done, _all: None,
) -> Advised:
    """Measure what can make retrieval over a corpus slow or wrong; nothing is stored, and nothing of it is left."""
    return _Adviser(database, corpus, k, question_set, progress).all()


class _Adviser:
    def __init__(self, database: Database, corpus: Corpus, k: int, question_set: str, progress: Progress) -> None:
        self._database, self._corpus, self._k, self._set, self._progress = database, corpus, k, question_set, progress
        self._table = _quoting.identifier(corpus.table)
        self._vectors = _quoting.identifier(corpus.vector_table or corpus.table)
        self._documents = _inventory.rows(database, corpus.table)
        self._info: Mapping[str, Any] = {}
        # words of any-term, which another function of the analyzer has to drop as well
        self._drop: list[str] = []

    def all(self) -> Advised:
        database, corpus = self._database, self._corpus
        self._info = database.value("INFO FOR DB")
        sample = database.value(_SAMPLE, set=self._set, number=_ASKED)
        questions: list[dict[str, Any]] = sample["questions"]
        unready = self._indexes()
        bad = {finding.subject for finding in unready}
        words = corpus.has_words and not any(f"index {index.name}" in bad for index in corpus.words)
        vectors = corpus.vector is not None and f"index {corpus.nearest}" not in bad
        asked = [one for one in questions if one["embedded"]]
        steps: list[tuple[str, bool, Callable[[], list[Advice]]]] = [
            ("vectors of the documents", corpus.vector is not None, self._faulty_vectors),
            ("several vector indexes on a field", corpus.vector is not None, self._several_indexes),
            ("ef and K of vector searches", vectors and bool(asked), lambda: self._short(asked)),
            ("words of the questions", words and bool(questions), lambda: self._any_term(sample["texts"], questions)),
            ("identifiers", words, lambda: self._identifiers(sample["texts"])),
            ("vectors beside the texts", words and corpus.vector is not None and not corpus.vector_table, self._reading),
            (f"ties at k = {self._k}", words and bool(questions), lambda: self._ties(questions)),
        ]
        findings, looked, warnings = unready, ["indexes"], []
        for place, (what, possible, step) in enumerate(steps):
            if possible:
                try:
                    findings = [*findings, *step()]
                    looked.append(what)
                except SurrecallError as error:
                    if error.statement is None:
                        raise
                    warnings.append(f"{what}: not looked at: {error.message}")
            self._progress(place + 1, len(steps))
        if not questions:
            warnings.append(
                f"the golden set {self._set} has no question to search with, so what depends on them was not looked at"
            )
        return Advised(findings, looked, warnings)

    def _indexes(self) -> list[Advice]:
        """Indexes that are missing, of another kind or still built."""
        rows = self._database.value("RETURN fn::corpus_indexes()[WHERE state != 'ready']")
        found = []
        for row in rows:
            mendable = row["state"] in ("missing", "of another kind")
            mend = row.get("mend") or "surrecall apply"
            of_statement = [part.strip() for part in mend.split(";") if part.strip() and not part.strip().startswith("surrecall")]
            found.append(
                Advice(
                    "index-not-ready",
                    f"index {row['name']}",
                    f"INFO says that it is {row['state']} on {row['table']}",
                    "searches find documents again: without the index the engine gives every row, or none, and no error",
                    [f"{statement};" for statement in of_statement] if mendable else [],
                    (["surrecall apply"] if "surrecall apply" in mend else [])
                    if mendable
                    else ["wait until INFO FOR INDEX says ready"],
                    {"state": row["state"]},
                )
            )
        return found

    def _faulty_vectors(self) -> list[Advice]:
        """Documents without a vector, and vectors that can't be searched with."""
        corpus, database = self._corpus, self._database
        own = corpus.vector_table or corpus.table
        statement = _VECTORS.format(vector=corpus.vector, dimension=corpus.dimension)
        rows: Any = Table(own)
        missing: list[Any] = []
        zero: list[Any] = []
        while True:
            told = database.value(statement, rows=rows, limit=_PAGE)
            missing, zero = missing + told["missing"], zero + told["zero"]
            if told["read"] < _PAGE:
                break
            rows = RecordID(own, Range(BoundExcluded(told["last"].id), None))
        without = len(missing)
        if corpus.link:
            linked = f"(SELECT {corpus.link} AS document FROM {self._vectors} GROUP BY document)[WHERE document != NONE]"
            without = database.value(f"RETURN fn::corpus_size() - {linked}.len()")
        elif corpus.linked_by:
            no_link = f"{corpus.linked_by} = NONE OR {corpus.linked_by} = NULL"
            without = database.value(f"RETURN (SELECT VALUE id FROM {self._table} WHERE {no_link}).len()")
        found = []
        embed = ["surrecall embed"] if not corpus.vector_table else ["embed them, with the model that made the others"]
        if zero:
            where = f"type::is_array({corpus.vector}) AND !fn::usable_vector({corpus.vector}, {corpus.dimension})"
            where = self._database.settings.names.get("fn::usable_vector", "fn::usable_vector").join(
                where.split("fn::usable_vector")
            )
            mend = (
                f"DELETE {self._vectors} WHERE {where};"
                if corpus.vector_table
                else f"UPDATE {self._vectors} SET {corpus.vector} = NONE WHERE {where};"
            )
            found.append(
                Advice(
                    "zero-vectors",
                    f"{own}.{corpus.vector}",
                    f"{len(zero)} of {_inventory.rows(database, own)} vectors are zeros, NaN or of another length than {corpus.dimension}: "
                    + _few(zero),
                    "their distance is NaN, which the engine ranks first: each takes a place of every list that is not guarded",
                    [mend],
                    embed,
                    {"vectors": len(zero)},
                )
            )
        if without:
            found.append(
                Advice(
                    "no-vector",
                    corpus.table,
                    f"{without} of {_render.counted(self._documents, 'document')} have no vector"
                    + (": " + _few(missing) if missing else ""),
                    "vector search can find them, which it can't now",
                    [],
                    embed,
                    {"documents": without},
                )
            )
        return found

    def _several_indexes(self) -> list[Advice]:
        """Other vector indexes on the field: a search that names none takes one of them by its name."""
        corpus = self._corpus
        defined = self._database.run_as_written(f"INFO FOR TABLE {self._vectors}")[-1]["indexes"]
        others = [
            name
            for name, text in defined.items()
            if name != corpus.nearest and re.search(rf" FIELDS {re.escape(str(corpus.vector))} HNSW ", text)
        ]
        if not others:
            return []
        return [
            Advice(
                "two-indexes",
                f"{corpus.vector_table or corpus.table}.{corpus.vector}",
                f"{len(others) + 1} vector indexes are on it: {', '.join([str(corpus.nearest), *others])}",
                "a search that names no index takes the last of them by name on one executor and the first on the other, whatever its "
                "distance; with one they agree, and writes are faster",
                [f"REMOVE INDEX {_quoting.identifier(name)} ON {self._vectors};" for name in others],
                ["or name the index in each search: FROM … WITH INDEX …"],
                {"indexes": [corpus.nearest, *others]},
            )
        ]

    def _short(self, questions: Sequence[dict[str, Any]]) -> list[Advice]:
        """Searches whose ef is below K, and how many rows such a search gives here."""
        corpus = self._corpus
        found = []
        for one in self._database.value("RETURN fn::advise_short($functions)", functions=self._info["functions"]):
            definition = one["definition"]
            measured = []
            for literal in one["literals"]:
                k, ef = literal["k"], literal["ef"]
                body = (
                    f"RETURN (SELECT VALUE id FROM {self._vectors} WITH INDEX {_quoting.identifier(str(corpus.nearest))} "
                    f"WHERE {corpus.vector} <|{k},{ef}|> $text).len()"
                )
                with self._defined({"short": body}) as probe:
                    came = self._database.value(
                        f"RETURN fn::nearest_rank(array::sort($questions.map(|$id| {probe['short']}($id.embedding))), 50)",
                        questions=[question["id"] for question in questions],
                    )
                measured.append({"k": k, "ef": ef, "returned": came})
                definition = re.sub(rf"<\|\s*{k}\s*,\s*{ef}\s*\|>", f"<|{k},{k * 3 // 2}|>", definition)
            ours = f"fn::{one['name']}" == self._database.settings.names.get("fn::search_vec", "fn::search_vec")
            found.append(
                Advice(
                    "ef-below-k",
                    f"fn::{one['name']}",
                    "; ".join(
                        f"<|{row['k']},{row['ef']}|> gives {row['returned']} of the {row['k']} it asks for" for row in measured
                    )
                    + f" (median of {_render.counted(len(questions), 'question')})",
                    "as many candidates as are asked for, and more of the true neighbours among them; surrecall ann has the price",
                    [definition.replace("DEFINE FUNCTION", "DEFINE FUNCTION OVERWRITE", 1).rstrip(";") + ";"],
                    ["the same in surql/corpus/search_vec.surql, or surrecall apply puts it back"] if ours else [],
                    {"literals": measured},
                )
            )
        return found

    def _any_term(self, texts: list[str], questions: list[dict[str, Any]]) -> list[Advice]:
        """Words that most documents have, and what the same questions cost without them."""
        database = self._database
        words = [*database.value(_WORDS, texts=texts, limit=_COUNTED), *_MARKS]
        with self._defined({"all": self._count("@{}@"), "any": self._count("@{},OR@")}) as probe:
            counts = self._each(probe["all"], words)
            matched = self._each(probe["any"], [question["text"] for question in questions])
        rows = [{"word": word, "documents": count} for word, count in zip(words, counts, strict=True)]
        told = database.value(
            "RETURN fn::advise_any_term($words, $matched, $documents)", words=rows, matched=matched, documents=self._documents
        )
        if told is None:
            return []
        self._drop = told["drop"]
        search = database.settings.names.get("fn::search_bm25", "fn::search_bm25")
        drop = _without(told["drop"])
        with self._defined({"timed": _TIMED.format(search=search), "drop": f"RETURN {drop.format('$text')};"}) as probe:
            before, after = [], []
            for question in questions:
                clean = f"object::extend($one, {{ text: {probe['drop']}($one.text) }})"
                one, other = f"RETURN {probe['timed']}($one)", f"LET $clean = {clean}; RETURN {probe['timed']}($clean)"
                before.append(database.value(one, one=question))
                after.append(database.value(other, one=question))
        effect = database.value(_EFFECT, before=before, after=after)
        listed = ", ".join(f"{row['word']} {row['share']:.0%}" for row in told["words"][:6])
        return [
            Advice(
                "any-term",
                f"analyzer {self._corpus.analyzer_name}",
                f"the median question matches {told['share']:.0%} of {_render.counted(self._documents, 'document')} by some word; "
                f"{len(told['drop'])} words and marks do it: {listed}" + (", …" if len(told["drop"]) > 6 else ""),
                f"faster text search: {_render.counted(effect['questions'], 'question')} without these words take {effect['after']:.1f} ms instead of "
                f"{effect['before']:.1f} (median), nDCG@10 {effect['ndcg_after']:.3f} instead of {effect['ndcg_before']:.3f}",
                self._analyzer([drop]),
                self._files(),
                {**told, "effect": effect},
            )
        ]

    def _identifiers(self, texts: list[str]) -> list[Advice]:
        """Identifiers of questions, then of documents, that the analyzer takes apart."""
        database, corpus = self._database, self._corpus
        rows = database.run_as_written(f"SELECT VALUE <string> ({corpus.body} ?? '') FROM {self._table} LIMIT {_READ_ROWS}")[-1]
        found: list[str] = []
        for some in (texts, rows):
            found += database.value("RETURN fn::identifiers_of($texts, $limit)", texts=some, limit=_TRIED)
        names = list(dict.fromkeys(found))[:_TRIED]
        if not names:
            return []
        tokens = database.value(
            "RETURN $names.map(|$name| search::analyze($analyzer, $name))", names=names, analyzer=corpus.analyzer_name
        )
        holds = " OR ".join(
            f"string::contains(string::lowercase(<string> ({index.field} ?? '')), $text)" for index in corpus.words
        )
        held = f"({self._match('@{}@')}) AND ({holds})"
        with self._defined({"any": self._count("@{},OR@"), "held": self._counted(held)}) as probe:
            matched, counts = self._each(probe["any"], names), self._each(probe["held"], names)
        measured = [
            {"name": name, "tokens": pieces, "matched": match, "held": count}
            for name, pieces, match, count in zip(names, tokens, matched, counts, strict=True)
        ]
        told = database.value("RETURN fn::advise_identifiers($measured)", measured=measured)
        if told is None:
            return []
        shown = "; ".join(
            f"{row['name']} becomes {' '.join(row['tokens'])}, matches {row['matched']}, stands in {row['held']}"
            for row in told["split"][:3]
        )
        return [
            Advice(
                "split-identifiers",
                f"analyzer {corpus.analyzer_name}",
                f"{len(told['split'])} of {told['tried']} identifiers are taken apart and match documents by their pieces: {shown}",
                "a search for one finds the documents that hold it, and is not led off by its pieces; a piece alone no longer finds it, words joined by a hyphen are still found apart",
                self._analyzer([_KEEP], "BLANK"),
                [*(["run these in place of those of any-term, whose words they drop too"] if self._drop else []), *self._files()],
                told,
            )
        ]

    def _reading(self) -> list[Advice]:
        """How long reading documents takes with their vectors beside the texts, and without."""
        database, corpus = self._database, self._corpus
        ids = database.run_as_written(f"SELECT VALUE id FROM {self._table} LIMIT {_READ_ROWS}")[-1]
        read = _READ.format(text=corpus.body)
        whole: list[float] = []
        alone: list[float] = []
        with _probes.table(database, "advise", "copies of documents, for a moment") as trial:
            copies = database.run_as_written(
                f"LET $rows = (SELECT * OMIT {corpus.vector} FROM $ids); "
                f"RETURN INSERT INTO {trial} (SELECT *, type::record('{trial}', record::id(id)) AS id FROM $rows) RETURN VALUE id;",
                ids=ids,
            )[-1]
            for _ in range(_ROUNDS):
                whole.append(database.value(read, ids=ids))
                alone.append(database.value(read, ids=copies))
        told = database.value(
            "RETURN fn::advise_reading($whole, $alone, $documents)", whole=whole, alone=alone, documents=self._documents
        )
        if told is None:
            return []
        return [
            Advice(
                "vector-beside-text",
                f"{corpus.table}.{corpus.vector}",
                f"reading {_render.counted(len(ids), 'document')} takes {told['whole']:.1f} ms, without {corpus.vector} {told['alone']:.1f} ms (the fastest "
                f"of {_ROUNDS} rounds): text search reads every document that matches, whole",
                f"faster text search, the more documents a question matches: up to {told['ratio']:.1f} times; the rankings stay as they are",
                self._apart(),
                self._adopt(),
                told,
            )
        ]

    def _ties(self, questions: Sequence[dict[str, Any]]) -> list[Advice]:
        """Equal scores on both sides of the cut, for each retriever that gives scores."""
        database = self._database
        found = []
        for name in database.value("SELECT VALUE record::id(id) FROM retriever ORDER BY position, id"):
            rankings = [
                database.value(
                    "LET $row = (SELECT * FROM ONLY $id); RETURN fn::ranking($name, $row, $k)",
                    id=one["id"],
                    name=name,
                    k=self._k + 1,
                )
                for one in questions
            ]
            told = database.value("RETURN fn::advise_ties($rankings, $k)", rankings=rankings, k=self._k)
            if told is None:
                continue
            floor = f", {told['zero']} at a score of 0 (a word in half of the documents scores nothing)" if told["zero"] else ""
            found.append(
                Advice(
                    "ties-at-the-cut",
                    f"retriever {name}",
                    f"for {told['tied']} of {_render.counted(told['questions'], 'question')} rank {self._k} and the next have the same score{floor}",
                    "what is in the first k is decided by the retriever, not by ids; until then these figures move when ids do",
                    [],
                    [
                        "where its order does not end with the id: ORDER BY score DESC, id, so that it is the same each time",
                        "for scores of 0: a floor, fn::search_hybrid_floor, or leave out what scores nothing",
                    ],
                    told,
                )
            )
        return found

    def _apart(self) -> list[str]:
        """Statements that move the vectors into a table of their own."""
        corpus = self._corpus
        assert corpus.vector is not None
        assert corpus.nearest is not None
        taken = self._info["tables"]
        free = next(name for i in range(1, 1000) if (name := f"{corpus.table}_vector{i if i > 1 else ''}") not in taken)
        apart = _quoting.identifier(free)
        defined = self._database.run_as_written(f"INFO FOR TABLE {self._table}")[-1]
        index = defined["indexes"][corpus.nearest]
        options = index[index.index(" HNSW ") :].partition(" COMMENT ")[0]
        pages = f"SELECT type::record({_quoting.text(free)}, record::id(id)) AS id, id AS document, {corpus.vector} AS vector"
        removal = [
            f"REMOVE FIELD {name} ON {self._table};"
            for name in defined["fields"]
            if name.split(".")[0].split("[")[0] == corpus.vector
        ]
        return [
            f"DEFINE TABLE {apart} SCHEMAFULL COMMENT 'vectors of {_quoting.inside(corpus.table)}, apart from its texts';",
            f"DEFINE FIELD document ON {apart} TYPE record<{self._table}>;",
            f"DEFINE FIELD vector ON {apart} TYPE array<float>;",
            f"LET $vectors = ({pages} FROM {self._table} WHERE type::is_array({corpus.vector}));",
            f"INSERT INTO {apart} $vectors RETURN NONE;",
            f"DEFINE INDEX {_quoting.identifier(corpus.table + '_near')} ON {apart} FIELDS vector{options};",
            f"REMOVE INDEX {_quoting.identifier(corpus.nearest)} ON {self._table};",
            *sorted(removal, reverse=True),
            # under a full-text index every update writes the words of the document anew: minutes, where building it again takes seconds
            *(f"REMOVE INDEX {_quoting.identifier(index.name)} ON {self._table};" for index in corpus.words),
            # only what has arrived there goes here, whatever failed before
            f"UPDATE {self._table} UNSET {corpus.vector} WHERE type::record({_quoting.text(free)}, record::id(id)).vector != NONE RETURN NONE;",
            *(f"{defined['indexes'][index.name]};" for index in corpus.words),
        ]

    def _adopt(self) -> list[str]:
        corpus = self._corpus
        fields = " ".join(f"--field {shlex.quote(name)}" for name in corpus.texts)
        if corpus.pieces is not None:
            fields += " --parent {} --position {}".format(*map(shlex.quote, corpus.pieces))
        steps = [
            f"surrecall init --adopt --table {shlex.quote(corpus.table)} {fields} --pool {corpus.pool} --reference {corpus.reference} --force",
            "surrecall apply",
            "put back what was yours in surrecall.toml (k, prompt_k) and surql/corpus (floors.toml, retrievers.toml): --force writes them anew",
            "write vectors of new documents into that table: surrecall's imports and surrecall embed do not",
        ]
        if not corpus.adopted:
            made = sorted({f"{corpus.table}.surql", *(f"{name}.surql" for name in corpus.indexes)})
            steps.insert(0, "rm " + " ".join(f"surql/corpus/{name}" for name in made))
        return steps

    def _analyzer(self, rewrites: Sequence[str], tokenizers: str | None = None) -> list[str]:
        """Statements that put a function before the analyzer, and build the indexes anew."""
        corpus = self._corpus
        text = self._info["analyzers"][corpus.analyzer_name]
        match = re.fullmatch(r"DEFINE ANALYZER (`(?:[^`\\]|\\.)*`|\S+)(?: FUNCTION (fn::[\w:]+))?(.*)", text, re.DOTALL)
        assert match is not None
        name, before, rest = match.groups()
        plain = re.sub(r"\W+", "_", corpus.analyzer_name.lower()).strip("_") + "_words"
        if tokenizers is not None:
            rest = re.sub(r" TOKENIZERS \w+(?:, ?\w+)*", f" TOKENIZERS {tokenizers}", rest)
            if before and re.fullmatch(rf"fn::{plain}\d*", before):
                # ours, which makes blanks of the marks inside names too: its words are taken over, and not the marks
                words = re.search(r"\(\?:([^()]+)\)", self._info["functions"][before.removeprefix("fn::")])
                self._drop = self._drop or (words[1].split("|") if words else [])
                before = None
            letters = [word for word in self._drop if word.isalnum()]
            rewrites = [*([_without(letters)] if letters else []), *rewrites]
        number = next(i for i in range(1, 1000) if f"{plain}{i if i > 1 else ''}" not in self._info["functions"])
        own = f"fn::{plain}{number if number > 1 else ''}"
        body = f"{before}($text)" if before else "$text"
        for rewrite in rewrites:
            body = rewrite.format(body)
        return [
            f"DEFINE FUNCTION {own}($text: string) {{ RETURN {body} }} COMMENT 'what the analyzer {_quoting.inside(corpus.analyzer_name)} reads of a text';",
            f"DEFINE ANALYZER OVERWRITE {name} FUNCTION {own}{rest};",
            *(f"REBUILD INDEX {_quoting.identifier(index.name)} ON {self._table};" for index in corpus.words),
        ]

    def _files(self) -> list[str]:
        """What an init'ed corpus has in a file too."""
        corpus = self._corpus
        return (
            []
            if corpus.adopted
            else [f"the same in surql/corpus/{corpus.table}.surql, which defines the analyzer of a new database"]
        )

    def _match(self, operator: str) -> str:
        return " OR ".join(f"{index.field} {operator.format(place)} $text" for place, index in enumerate(self._corpus.words, 1))

    def _count(self, operator: str) -> str:
        return self._counted(self._match(operator))

    def _counted(self, condition: str) -> str:
        return f"RETURN (SELECT count() FROM {self._table} WHERE {condition} GROUP ALL)[0].count ?? 0;"

    def _each(self, probe: str, values: Sequence[str]) -> list[int]:
        """What a probe counts for each value, some at a time; in a closure it counts without reading the documents."""
        counts: list[int] = []
        for start in range(0, len(values), _CHUNK):
            counts += self._database.value(_EACH.replace("PROBE", probe), words=list(values[start : start + _CHUNK]))
        return counts

    @contextmanager
    def _defined(self, bodies: Mapping[str, str]) -> Iterator[dict[str, str]]:
        with _probes.defined(self._database, "advise", bodies, _PROBE) as names:
            yield names


# rewrites the text {}: marks become blanks, but for those inside a name with a digit
_KEEP = (
    "(SELECT VALUE IF string::matches($this, <regex> '[0-9_]') {{ $this }} ELSE {{ string::replace($this, <regex> '[^\\\\p{{L}}\\\\p{{N}}]+', ' ') }} "
    "FROM string::split(string::replace(string::replace({}, <regex> '[.,;:!?)\\\\]}}\"]+(\\\\s|$)', ' '), <regex> '[\\\\s(\\\\[{{\"]+', ' '), ' ')).join(' ')"
)


def _without(words: Sequence[str]) -> str:
    letters = sorted(word for word in words if word.isalnum())
    marks = "".join(re.escape(word) for word in words if not word.isalnum())
    parts = ([rf"\b(?:{'|'.join(letters)})\b"] if letters else []) + ([f"[{marks}]"] if marks else [])
    pattern = ("(?i)" + "|".join(parts)).replace("\\", "\\\\").replace("{", "{{").replace("}", "}}")
    return f"string::replace({{}}, <regex> '{pattern}', ' ')"


def _few(ids: Sequence[RecordID]) -> str:
    return ", ".join(_render.record_text(one) for one in ids[:3]) + (" …" if len(ids) > 3 else "")
