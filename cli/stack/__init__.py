"""The embedded stack: real servers from wheels, and the programs that use them."""
