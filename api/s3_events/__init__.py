"""What object stores say about new objects: bytes in, small values out."""
