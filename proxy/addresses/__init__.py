"""Addresses for Services of type LoadBalancer: whose they are, out of pools, and why somebody waits.

Pure: everything but `follow`, `leader`, `writer` and `controller`. State flows one way: the API's bytes, typed values
(`types`), accepted pools (`accept`), one answer for all Services (`allocate`), what to write (`plan`). An answer
depends on nothing but the pools and the Services with their status, so a restart or another replica gives the same.
"""
