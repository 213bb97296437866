"""Measurements: this core beside its peers, a whole fleet, a full database; and what harms a fleet.

Part of the source checkout and not of the wheel: the peers are installed from the lists here.
"""
