"""kube-proxy's configuration: its file (KubeProxyConfiguration v1alpha1) and its flags, as closeby takes them."""
