"""How closeby comes onto nodes: the image, the manifests, the chart, and what watches it."""
