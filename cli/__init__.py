"""The ``pagefleet`` command and the embedded stack it can start."""
