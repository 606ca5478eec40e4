"""The internet-facing, write-only HTTP service (R17-R19, R35).

Nothing here can decode: the process that strangers reach holds counts, and no way to read them out.
"""
