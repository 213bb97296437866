"""The OCR core: bytes and arrays in, values out.

Nothing here knows a network, a database, a queue, the environment or a clock that decides
anything. Every outside library has one door: onnxruntime in ``inference``, PyMuPDF in ``pdf``,
Pillow in ``raster``; OpenCV is used only inside this package.
"""
