"""The words around the table of docs/configuration.md."""

BEFORE = """\
# Configuration

<!-- Made from proxy/kubeproxy by `make docs`; edit it there. -->

`closeby run` takes kube-proxy's configuration file and kube-proxy's flags, by their names.

    closeby run --config /var/lib/kube-proxy/config.conf --hostname-override node-1
    closeby run --kubeconfig /etc/kubernetes/proxy.conf --cluster-cidr 10.244.0.0/16

The file is a KubeProxyConfiguration (`kubeproxy.config.k8s.io/v1alpha1`), YAML or JSON; what kubeadm and kind put \
into the ConfigMap `kube-proxy` works as it is. A null counts as absent. An unknown or repeated field ends the start \
with exit code 2 and its line (kube-proxy only warns).

With `--config`, flags that the file can hold are ignored, and the log says which. These still count: \
`--hostname-override`, `--master`, `--write-config-to`, the flags of `logging`, and closeby's own below. \
`--manifests` takes the place of the file's kubeconfig.

When the file changes, the process ends with exit code 1 and a line, so that whoever runs it starts it anew; the \
rules stay in place meanwhile. The file is looked at once a second, by its content.

`--write-config-to FILE` writes what the file or the flags say, with every default, and ends.

## Fields and flags

A setting that is given and ignored is a line in the log (`setting_noted`) with the reason.
"""

AFTER = """
Also taken: `--healthz-port` and `--metrics-port` (deprecated; 0 turns the server off, as does an empty address; the \
file can't), and `--init-only`, which sets the conntrack settings and ends. `--cleanup` is the command `closeby \
cleanup`.

## closeby's own flags

They stand beside the file; [command-line.md](command-line.md) describes them.

| flag | default | |
|---|---|---|
| `--manifests` | | a folder as the source, in place of an API server |
| `--same-node-for-daemon-sets` | `Auto` | whether PreferClose means the same node for a DaemonSet's pods |
| `--control-socket` | `/run/closeby/closeby.sock` | where `closeby dump` asks |
| `--proc-sys` | `/proc/sys` | where conntrack settings are written |
| `--log-format` | `auto` | `json`, `console`, or by what stderr is |
| `--min-sync-period`, `--sync-period` | `20ms`, `30s` | as the periods above, and they win over them |"""
