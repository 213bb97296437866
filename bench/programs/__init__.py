"""Programs that read pages for a benchmark, each in an environment of its own.

Only ``pagefleet`` and ``memory_curve`` import the project; the others must do without it.
"""
