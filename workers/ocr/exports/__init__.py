"""Formats that are made from the stored result, page by page and without recognizing again.

Every writer takes the result's header (all of it before ``full_text``) and page objects in page
order, and yields text. None needs numpy or a library of files: the API uses them too.
"""
