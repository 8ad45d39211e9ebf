"""Moving conversations between databases, and looking whether a database is whole.

verifying.py      is everything as its checksums say?
exporting.py      conversations out of a database, as lines
importing.py      and into another
reading_files.py  the lines of a file, as often as they are wanted
lines.py          the lines: each carries a digest of itself
"""

from haru_fsm.transfer.exporting import export
from haru_fsm.transfer.importing import import_lines
from haru_fsm.transfer.reading_files import lines_of
from haru_fsm.transfer.verifying import Finding, verify

__all__ = ["Finding", "export", "import_lines", "lines_of", "verify"]
