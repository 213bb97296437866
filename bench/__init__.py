"""Benchmarks: this core beside its peers, its memory over thousands of pages, and a GPU machine.

Part of the source checkout and not of the wheel: the peers are installed from the lists here.
"""
