//go:build tools

// This file imports programs that are built unchanged, so that go.mod lists their versions beside those of Kubernetes.
package main

import _ "helm.sh/helm/v3/cmd/helm"
