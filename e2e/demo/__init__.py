"""`make demo`: closeby on a little cluster, its promises checked against real connections while the world changes.

A promise is what `closeby plan` says for a node before anything is sent; the servers' own answers say whether it held.
"""
