"""Name the functions whose value may differ although their arguments do not.

Some have another value at each call, others at each run: of the clock, the user, or the file that
is being read. Both dialects' names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from penstock.sql.identifiers import fold
from penstock.sql.tokens import NAME, WORD, Token

_EACH_CALL = """
    gen_random_uuid monotonically_increasing_id nextval rand randn random randstr shuffle
    spark_partition_id uniform uuid uuidv4 uuidv7
"""
_EACH_RUN = """
    curdate current_date current_localtime current_localtimestamp current_time current_timestamp
    current_user get_current_time get_current_timestamp getenv localtime localtimestamp now
    session_user today transaction_timestamp txid_current unix_timestamp user
"""
_OF_FILES_AND_JAVA = """
    input_file_block_length input_file_block_start input_file_name java_method reflect try_reflect
"""
EACH_CALL = frozenset(_EACH_CALL.split())
#: what differs from run to run for the same row
VOLATILE = EACH_CALL | frozenset(_EACH_RUN.split())
#: what tells a query more than rows: which file they are in, or whatever Java answers
OPAQUE = frozenset(_OF_FILES_AND_JAVA.split())
#: those that may be written without brackets
CALLED_WITHOUT_BRACKETS = frozenset(
    {
        *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"),
        *("current_user", "session_user"),
    }
)
_SAMPLES = frozenset({"TABLESAMPLE", "SAMPLE"})


def volatile_calls(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the names of the volatile and opaque functions that a text calls, and of samples."""
    for token, after in pairwise((*tokens, *tokens[-1:])):
        name = fold(token.value)
        if token.kind == WORD:
            is_volatile = name in CALLED_WITHOUT_BRACKETS or token.upper in _SAMPLES
        else:
            is_volatile = False
        if token.kind in {WORD, NAME} and after.text == "(":
            is_volatile = is_volatile or name in VOLATILE | OPAQUE
        if is_volatile:
            yield token
