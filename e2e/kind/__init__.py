"""A real cluster of kubelets, made by kind: `python -m e2e.kind up`.

kind is used unpatched, through dockerd: the one that runs, or one started here in a network namespace of its own. What
only sandboxes need is switched on by what `host` finds. Nothing here knows how closeby is installed: `up` takes a
folder of manifests and image archives for that.
"""
