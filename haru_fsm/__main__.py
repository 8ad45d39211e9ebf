"""`python -m haru_fsm`: the `haru` command."""

import sys

from haru_fsm.cli import main

if __name__ == "__main__":
    sys.exit(main())
