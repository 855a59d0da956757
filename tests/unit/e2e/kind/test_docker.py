from e2e.kind.docker import without_stacks

SAID = """\
error: the API server is not there
k8s.io/kubernetes/cmd/kubeadm/app.Run
        k8s.io/kubernetes@v1.36.3/cmd/kubeadm/app/kubeadm.go:48
main.(*kind).main
\tmain.go:61
runtime.goexit
        runtime/asm_amd64.s:1771
Command exited
"""


def test_an_error_is_told_without_the_stack_that_follows_it() -> None:
    assert without_stacks(SAID) == ["error: the API server is not there", "Command exited"]
