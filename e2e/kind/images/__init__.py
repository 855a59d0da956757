"""Container images made without a registry: of Debian's packages and of our Go programs.

Everything is cached in `$CLOSEBY_CACHE/kind/images`, under names that tell what it was made of.
"""
