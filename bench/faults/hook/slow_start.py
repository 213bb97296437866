"""Makes the start of a worker's pool child take long, as that of a large model from a slow disk.

``SLOW_START_S`` says how long, in seconds.
"""

import os
import sys
import time

if "--billiard-fork" in sys.orig_argv:
    time.sleep(float(os.environ["SLOW_START_S"]))
