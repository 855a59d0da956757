// Command kube is Kubernetes as one binary, for tests and benchmarks: control plane, node, proxy and command line.
//
// The component is named by the first argument, or by the name the binary is called under (a link is enough):
//
//	kube kube-apiserver --help
//
// Components are imported as modules, unchanged; go.mod pins their version.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJob time zones on machines without a zone database

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubeadmerrors "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// components says how each one is run. Each reads its flags from os.Args[1:] and returns an exit code.
// Commands are made only when chosen: making one registers flags and feature gates for the whole process.
var components = map[string]func() int{
	"etcd":                    runEtcd,
	"kube-apiserver":          runner(apiserver.NewAPIServerCommand),
	"kube-controller-manager": runner(controllermanager.NewControllerManagerCommand),
	"kube-proxy":              runner(proxy.NewProxyCommand),
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubeadm":                 runKubeadm,
	"kubectl":                 runKubectl,
	"kubelet":                 runKubelet,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, ok := components[name]; !ok && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	run, ok := components[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "no component %q; give one of: %s\n", name, strings.Join(names(), ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

func names() []string {
	var all []string
	for name := range components {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func runner(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}

// runEtcd returns only after an orderly stop; etcd itself exits the process on errors.
func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

// runKubectl leaves the printing of errors to kubectl, which words them for people and exits.
func runKubectl() int {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return 0
}

// runKubeadm leaves the wording of errors, and their exit codes, to kubeadm.
func runKubeadm() int {
	kubeadmerrors.HandleError(kubeadm.Run())
	return 0
}

func runKubelet() int {
	return cli.Run(kubelet.NewKubeletCommand(context.Background()))
}
