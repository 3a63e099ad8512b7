//go:build tools

// Programs that are built as they are, so that go.mod has their versions beside those of Kubernetes.
package main

import _ "helm.sh/helm/v3/cmd/helm"
