"""HTTP to servers of tests, which speak no TLS."""

import ssl
from typing import Final

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For ``verify=``: httpx parses all authorities of the world for each client that has no other."""
