"""Every Go program that tests run, from one Go module: Kubernetes as one binary, kind, CoreDNS, the upstream suite.

`build.build` makes one on demand and caches it. Programs are imported unchanged; `go.mod` pins their versions.
"""
