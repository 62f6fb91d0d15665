"""A real Kubernetes control plane on this machine, without containers, for tests.

`cluster.Cluster` starts etcd, kube-apiserver, kube-scheduler, kube-controller-manager, KWOK in the place
of the kubelets and, if asked, the KubeRay operator. `binaries` builds them once and keeps them. What
KWOK's pods do wrong is chosen by an annotation (`stages`), manifests come from `build`, and
`plugin` offers it all as pytest fixtures.
"""
