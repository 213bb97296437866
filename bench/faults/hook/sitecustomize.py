"""Loads the faults that ``FAULT_HOOKS`` names into a process that has this folder on its path.

Python imports a module of this name when it starts, so the program under test is not changed and
does not know. Names are of modules in this folder, separated by commas.
"""

import importlib
import os

for name in filter(None, os.environ.get("FAULT_HOOKS", "").split(",")):
    importlib.import_module(name)
