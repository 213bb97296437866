"""Makes the start of a worker's pool child take long, as that of a large model from a slow disk.

The file that ``SLOW_START_FILE`` names says how long, in seconds; without it nothing is slow.
"""

import os
import sys
import time
from pathlib import Path

_seconds = Path(os.environ["SLOW_START_FILE"])
if "--billiard-fork" in sys.orig_argv and _seconds.exists():
    time.sleep(float(_seconds.read_text()))
