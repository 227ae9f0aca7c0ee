"""The full-text index of the catalogue, beyond what its triggers do."""

import sqlite3

_MOST_STRUCTURE_BYTES = 512


def optimize_words(connection: sqlite3.Connection) -> None:
    """Merge the parts of the full-text index, which takes removed words out of it.

    Some versions of SQLite, 3.40 for one, add levels to the index each time, and refuse to read more than 2,000. Each
    takes two bytes of the record of its structure (row 10, says fts5_index.c). Before there are too many the index is
    written anew, which takes five times as long.
    """
    few = "SELECT 1 FROM words_data WHERE id = 10 AND length(block) <= ?"
    if connection.execute(few, (_MOST_STRUCTURE_BYTES,)).fetchone():
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    else:
        write_words_anew(connection)


def write_words_anew(connection: sqlite3.Connection) -> None:
    """Make the full-text index of the chunks' texts as they are now."""
    connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
    connection.execute("INSERT INTO words (rowid, text) SELECT number, text FROM chunks")
