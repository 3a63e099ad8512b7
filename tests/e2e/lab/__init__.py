"""The lab of the e2e tests: real Kubernetes programs, in separate processes and Linux namespaces."""
