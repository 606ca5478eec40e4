"""The internet-facing, write-only HTTP service.

It cannot decode: the process that strangers reach stores counts and has no way to read them out.
"""
