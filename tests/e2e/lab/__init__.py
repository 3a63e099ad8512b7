"""The rig under the e2e tests: real Kubernetes programs in processes and namespaces of their own."""
