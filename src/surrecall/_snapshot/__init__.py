"""A corpus, its golden sets and their definitions in one file, and that file in another database."""
