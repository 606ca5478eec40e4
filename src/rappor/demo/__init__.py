"""The demo: a simulated crowd, a real server, real reports, and what can be learnt from them.

`population` (who holds what), `definitions` (what is asked), `crowd` (a process that encodes and
sends), `server`, `run` (the calls in order), `found` (decoding, beside the truth). The truth stays
in this package: nothing of it is sent or stored.
"""
