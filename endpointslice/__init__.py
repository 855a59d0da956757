"""What the API's objects mean, and which endpoints a node's traffic may use.

What may live here: frozen values and pure functions from values to values. No I/O, no clock, no logging, no state that
outlives a call (bounded caches of pure functions apart); imports are the standard library without I/O, and msgspec.
What input can contain never raises: a broken object becomes an absent one with a `Skipped` that says why.
Nothing here knows the kernel, the network or where objects come from; that is the package `proxy`.
"""
