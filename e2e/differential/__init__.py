"""closeby and the real kube-proxy on the same random worlds: the same probes must meet the same fate.

Pure: model, places, generate, claim, mutate, kinds, objects, expect, targets, wanted, shrink. The others act.
"""
