"""A storm: a whole fleet on servers of its own, and faults at random."""
